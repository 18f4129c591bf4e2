#include "feed/event.hpp"

#include <array>
#include <stdexcept>
#include <utility>

namespace mailroom {

namespace {

constexpr std::array<std::pair<EventKind, std::string_view>, 11> kinds{{{EventKind::suspended, "suspended"},
                                                                        {EventKind::restored, "restored"},
                                                                        {EventKind::rewound, "rewound"},
                                                                        {EventKind::replayed, "replayed"},
                                                                        {EventKind::pruned, "pruned"},
                                                                        {EventKind::created, "created"},
                                                                        {EventKind::taken_over, "taken-over"},
                                                                        {EventKind::dead, "dead"},
                                                                        {EventKind::skipped, "skipped"},
                                                                        {EventKind::emitted, "emitted"},
                                                                        {EventKind::consumed, "consumed"}}};

}  // namespace

std::string_view kind_text(EventKind kind) {
  return kinds.at(static_cast<std::size_t>(kind)).second;
}

std::optional<EventKind> kind_of_operation(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, EventKind>, 5> operations{
      {{"suspend", EventKind::suspended},
       {"restore", EventKind::restored},
       {"rewind", EventKind::rewound},
       {"replay", EventKind::replayed},
       {"prune", EventKind::pruned}}};
  for (const auto& [name, event] : operations) {
    if (name == kind) return event;
  }
  return std::nullopt;
}

EventKind find_kind(std::string_view text) {
  for (const auto& [kind, name] : kinds) {
    if (name == text) return kind;
  }
  throw std::logic_error("no such event");
}

EventSource source_of(EventKind kind) {
  if (kind == EventKind::created) return EventSource::tokens;
  if (kind == EventKind::consumed) return EventSource::consumption;
  return kind < EventKind::created ? EventSource::operations : EventSource::batches;
}

const std::vector<std::string>& state_text() {
  static const std::vector<std::string> words{
      "created", "due",     "expired",   "consumed", "wrong-status", "emitted",  "taken-over",
      "dead",    "skipped", "suspended", "restored", "rewound",      "replayed", "pruned"};
  return words;
}

}  // namespace mailroom
