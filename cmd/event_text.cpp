#include "cmd/event_text.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr std::int64_t microseconds = 1'000'000;

std::string range_text(const IdRange& range) {
  return range.first == range.last ? std::to_string(range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

std::vector<IdRange> runs_of(const std::vector<std::int64_t>& ids) {
  std::vector<IdRange> runs;
  for (const auto id : ids) {
    if (!runs.empty() && runs.back().last + 1 == id) {
      runs.back().last = id;
    } else {
      runs.push_back({id, id});
    }
  }
  return runs;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result(text);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto byte = static_cast<unsigned char>(result[i]);
    if (byte < 0x20 || byte == 0x7F) result[i] = '?';
    // U+0080 to U+009F, of which some terminals take a few for the beginning of a sequence.
    if (byte == 0xC2 && i + 1 < result.size() && static_cast<unsigned char>(result[i + 1]) < 0xA0)
      result.replace(i, 2, "?");
  }
  if (is_printable(result)) return result;
  std::replace_if(
      result.begin(), result.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return result;
}

std::string time_text(const Event& event) {
  auto text = moment_text(event.time_us / microseconds);
  if (event.whole_seconds) return text;
  text.pop_back();
  return fmt::format("{}.{:03}Z", text, event.time_us % microseconds / 1000);
}

std::string subject_text(const Event& event) {
  if (event.token) return fmt::format("token {}", *event.token);
  if (event.batch) return fmt::format("batch {}", *event.batch);
  if (event.account) return fmt::format("account {}", *event.account);
  return event.queue.empty() ? "database" : "queue " + event.queue;
}

std::string ids_text(const Event& event) {
  std::string text;
  for (const auto& range : event.matches ? runs_of(*event.matches) : event.tokens)
    text += (text.empty() ? "" : ",") + range_text(range);
  return text;
}

int skipped(const Event& event) {
  return event.expired + event.consumed + event.wrong_status + event.invalid;
}

Event masked(Event event) {
  if (!event.email.empty()) event.email = masked_address(event.email);
  if (!event.login.empty()) event.login = masked_address(event.login);
  return event;
}

}  // namespace mailroom
