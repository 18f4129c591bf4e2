#include "feed/event.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace mailroom {
namespace {

std::int64_t take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) throw std::runtime_error("not a multirange of ids");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string_view word_text(EventWord word) {
  switch (word) {
    case EventWord::suspended:
      return "suspended";
    case EventWord::restored:
      return "restored";
    case EventWord::rewound:
      return "rewound";
    case EventWord::replayed:
      return "replayed";
    case EventWord::pruned:
      return "pruned";
    case EventWord::created:
      return "created";
    case EventWord::taken_over:
      return "taken-over";
    case EventWord::set_aside:
      return "set-aside";
    case EventWord::passed_over:
      return "passed-over";
    case EventWord::emitted:
      return "emitted";
    case EventWord::consumed:
      return "consumed";
  }
  throw std::logic_error("no such event");
}

std::optional<EventWord> word_of_operation(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, EventWord>, 5> words{{{"suspend", EventWord::suspended},
                                                                         {"restore", EventWord::restored},
                                                                         {"rewind", EventWord::rewound},
                                                                         {"replay", EventWord::replayed},
                                                                         {"prune", EventWord::pruned}}};
  for (const auto& [name, word] : words) {
    if (name == kind) return word;
  }
  return std::nullopt;
}

EventSource source_of(EventWord word) {
  if (word == EventWord::created) return EventSource::tokens;
  if (word == EventWord::consumed) return EventSource::consumption;
  return word < EventWord::created ? EventSource::operations : EventSource::batches;
}

std::vector<IdRun> parse_multirange(std::string_view text) {
  std::vector<IdRun> ranges;
  if (!take(text, '{')) throw std::runtime_error("not a multirange of ids");
  while (!text.starts_with('}')) {
    const bool is_next = ranges.empty() || take(text, ',');
    if (!is_next || !take(text, '[')) throw std::runtime_error("not a multirange of ids");
    const auto first = take_number(text);
    if (!take(text, ',')) throw std::runtime_error("not a multirange of ids");
    const auto end = take_number(text);
    if (!take(text, ')')) throw std::runtime_error("not a multirange of ids");
    if (first >= end) throw std::runtime_error("not a multirange of ids");
    ranges.push_back({first, end - 1});
  }
  if (text != "}") throw std::runtime_error("not a multirange of ids");
  return ranges;
}

std::int64_t count_ids(const std::vector<IdRun>& ranges) {
  std::int64_t count = 0;
  for (const auto& range : ranges)
    count += range.last - range.first + 1;
  return count;
}

const std::vector<std::string>& state_words() {
  static const std::vector<std::string> words{
      "due",         "expired",   "consumed", "wrong-status", "emitted",  "taken-over", "set-aside",
      "passed-over", "suspended", "restored", "rewound",      "replayed", "pruned"};
  return words;
}

}  // namespace mailroom
