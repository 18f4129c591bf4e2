// Header fields of mails, and blocks of fields in reports. Reports have several blocks each: a parser of
// mails for every one of them would take most of the time.

#include <algorithm>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "bounce/gmime_owner.hpp"
#include "bounce/mail_parts.hpp"

namespace mailroom::bounce {
namespace {

constexpr std::size_t most_fields = 2000;

/// One line without control characters, which hostile fields have.
std::string unfolded_line(std::string_view raw) {
  std::string line;
  line.reserve(raw.size());
  bool folds = false;
  for (const char c : raw) {
    const bool is_end = c == '\r' || c == '\n';
    if (folds && (c == ' ' || c == '\t')) continue;
    if (folds && !is_end) line += ' ';
    folds = is_end;
    if (!is_end) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return std::string(trimmed(line));
}

bool is_plain(std::string_view text) {
  return text.find("=?") == std::string_view::npos && is_ascii(text);
}

/// Reads the fields of a block line by line.
class BlockReader {
 public:
  void add(std::string_view line) {
    const bool continues = line.front() == ' ' || line.front() == '\t';
    if (continues && !name_.empty()) {
      value_.append("\n").append(line);
      return;
    }
    finish();
    const auto colon = line.find(':');
    const auto name = trimmed(line.substr(0, std::min(colon, line.size())));
    if (continues || colon == std::string_view::npos || name.find(' ') != std::string_view::npos) return;
    name_ = lower_case(name);
    value_ = line.substr(colon + 1);
  }

  HeaderFields take() {
    finish();
    return std::exchange(fields_, {});
  }

 private:
  void finish() {
    if (!name_.empty() && fields_.all().size() < most_fields)
      fields_.add(std::move(name_), field_text(value_));
    name_.clear();
  }

  HeaderFields fields_;
  std::string name_;
  std::string value_;
};

}  // namespace

void HeaderFields::add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

const std::string& HeaderFields::first(std::string_view name) const {
  static const std::string none;
  for (const auto& [key, value] : fields_)
    if (key == name) return value;
  return none;
}

bool HeaderFields::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(), [&](const auto& field) { return field.first == name; });
}

std::string field_text(std::string_view raw) {
  auto line = unfolded_line(raw);
  if (is_plain(line)) return line;
  static const bool initialised = (g_mime_init(), true);
  static_cast<void>(initialised);
  const gmime::OwnedText decoded(g_mime_utils_header_decode_text(nullptr, line.c_str()));
  return sound_utf8(unfolded_line(gmime::text_or_empty(decoded.get())));
}

std::vector<HeaderFields> read_field_blocks(std::string_view text, std::size_t limit) {
  std::vector<HeaderFields> blocks;
  BlockReader block;
  const auto finish = [&] {
    auto fields = block.take();
    if (!fields.is_empty()) blocks.push_back(std::move(fields));
  };
  for (std::size_t from = 0; from < text.size() && blocks.size() < limit;) {
    const auto end = std::min(text.find('\n', from), text.size());
    const auto line = text.substr(from, end - from);
    if (trimmed(line).empty()) {
      finish();
    } else {
      block.add(line.substr(0, line.find_last_not_of('\r') + 1));
    }
    from = end + 1;
  }
  if (blocks.size() < limit) finish();
  return blocks;
}

}  // namespace mailroom::bounce
