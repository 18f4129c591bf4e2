#include "feed/event.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace mailroom {
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

const std::vector<std::string>& state_words() {
  static const std::vector<std::string> words{
      "created",   "due",         "expired",   "consumed", "wrong-status", "emitted",  "taken-over",
      "set-aside", "passed-over", "suspended", "restored", "rewound",      "replayed", "pruned"};
  return words;
}

}  // namespace mailroom
