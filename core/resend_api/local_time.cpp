// Reads the second block of a zone file, which has times of 64 bits.

#include "resend_api/local_time.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>

namespace mailroom::resend_api {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr std::size_t most_size = 65536;

/// Numbers of a file, big-endian; what is beyond its end is zero.
class Bytes {
 public:
  explicit Bytes(std::string text) : text_(std::move(text)) {}

  std::int64_t number(std::size_t at, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8U | (at + i < text_.size() ? static_cast<std::uint8_t>(text_[at + i]) : 0U);
    const auto unused = 64U - 8U * static_cast<unsigned>(size);
    return std::bit_cast<std::int64_t>(value << unused) >> unused;
  }
  bool begins(std::size_t at, std::string_view word) const {
    return text_.compare(at, word.size(), word) == 0;
  }
  std::size_t size() const { return text_.size(); }

 private:
  std::string text_;
};

/// How many of each a block has (section 3.1).
struct Counts {
  std::size_t utc, standard, leap, times, types, letters;

  Counts(const Bytes& bytes, std::size_t at)
      : utc(count(bytes, at + 20)),
        standard(count(bytes, at + 24)),
        leap(count(bytes, at + 28)),
        times(count(bytes, at + 32)),
        types(count(bytes, at + 36)),
        letters(count(bytes, at + 40)) {}
  std::size_t size(std::size_t of_time) const {
    return times * (of_time + 1) + types * 6 + letters + leap * (of_time + 4) + standard + utc;
  }

 private:
  static std::size_t count(const Bytes& bytes, std::size_t at) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(bytes.number(at, 4), 0, most_size));
  }
};

constexpr std::size_t head_size = 44;

std::optional<std::string> read_zone_file(std::string_view name) {
  const bool is_name = !name.empty() && name.size() < 64 &&
                       std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                       std::ranges::all_of(name, [](unsigned char c) {
                         return std::isalnum(c) != 0 || c == '/' || c == '_' || c == '-' || c == '+';
                       });
  if (!is_name || name.find("//") != std::string_view::npos || name.ends_with('/')) return std::nullopt;
  std::ifstream file("/usr/share/zoneinfo/" + std::string(name), std::ios::binary);
  std::string text(most_size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

}  // namespace

TimeZone TimeZone::fixed(seconds offset) {
  TimeZone zone;
  zone.first_ = offset;
  return zone;
}

std::optional<TimeZone> TimeZone::find(std::string_view name) {
  if (name == "UTC" || name == "GMT") return fixed(seconds(0));
  auto text = read_zone_file(name);
  if (!text) return std::nullopt;
  const Bytes bytes(std::move(*text));
  if (bytes.size() < 2 * head_size || !bytes.begins(0, "TZif")) return std::nullopt;
  const auto at = head_size + Counts(bytes, 0).size(4);
  const Counts counts(bytes, at);
  if (at + head_size + counts.size(8) > bytes.size() || counts.types == 0) return std::nullopt;
  const auto times = at + head_size;
  const auto types = times + counts.times * 9;
  const auto offset = [&](std::size_t type) { return seconds(bytes.number(types + type * 6, 4)); };
  TimeZone zone;
  zone.first_ = offset(0);
  for (std::size_t i = 0; i < counts.times; ++i) {
    const auto type = static_cast<std::size_t>(bytes.number(times + counts.times * 8 + i, 1) & 0xff);
    if (type < counts.types)
      zone.changes_.push_back({sys_seconds(seconds(bytes.number(times + i * 8, 8))), offset(type)});
  }
  return zone;
}

seconds TimeZone::offset_at(sys_seconds moment) const {
  const auto next = std::ranges::upper_bound(changes_, moment, {}, &Change::at);
  return next == changes_.begin() ? first_ : std::prev(next)->offset;
}

Moment TimeZone::moment_of(LocalTime wall) const {
  // The offsets of the day before and after are all that can be meant.
  const Moment as_utc(wall.time_since_epoch());
  const auto whole = std::chrono::floor<seconds>(as_utc);
  const auto before = offset_at(whole - std::chrono::days(1));
  const auto after = offset_at(whole + std::chrono::days(1));
  for (const auto offset : {before, after})
    if (wall_of(as_utc - offset) == wall) return as_utc - offset;
  // It is skipped.
  return as_utc - before;
}

LocalTime TimeZone::wall_of(Moment moment) const {
  return LocalTime((moment + offset_at(std::chrono::floor<seconds>(moment))).time_since_epoch());
}

}  // namespace mailroom::resend_api
