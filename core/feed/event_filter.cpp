// The filters of tail: first by kind, which saves reading rows, then by the whole event.

#include <algorithm>

#include "feed/past_events.hpp"

namespace mailroom {

EventSource source_of(EventKind kind) {
  if (kind == EventKind::created || kind == EventKind::consumed) return EventSource::tokens;
  if (kind == EventKind::delivery) return EventSource::deliveries;
  return kind < EventKind::created ? EventSource::operations : EventSource::batches;
}

bool EventFilter::wants_state(std::string_view state) const {
  return states.empty() || std::find(states.begin(), states.end(), state) != states.end();
}

bool EventFilter::may_want(EventKind kind) const {
  // The state of a created token is not known yet.
  if (kind == EventKind::created) {
    return wants_state("created") || wants_state("due") || wants_state("expired") ||
           wants_state("consumed") || wants_state("wrong-status");
  }
  if (kind == EventKind::delivery) {
    const auto& own = delivery_states();
    return wants_state("delivery") ||
           std::any_of(own.begin(), own.end(), [&](const auto& state) { return wants_state(state); });
  }
  if (!wants_state(kind_text(kind))) return false;
  if (source_of(kind) == EventSource::batches) return !(kind == EventKind::skipped && asks_for_tokens());
  if (source_of(kind) == EventSource::tokens) return true;
  const bool is_of_account = kind == EventKind::suspended || kind == EventKind::restored;
  return !action && (accounts.empty() || is_of_account);
}

bool EventFilter::wants(const Event& event) const {
  const bool has_own_state = event.kind == EventKind::created || event.kind == EventKind::delivery;
  const bool is_wanted = wants_state(event.state()) || (has_own_state && wants_state(kind_text(event.kind)));
  if (!may_want(event.kind) || !is_wanted) return false;
  if (event.batch() != nullptr) return !asks_for_tokens() || (event.matches && !event.matches->empty());
  if (const auto* token = event.subject_token()) {
    if (token->id < from_token || (action && token->action != *action)) return false;
  }
  const auto* account = event.account();
  return accounts.empty() ||
         (account != nullptr && std::find(accounts.begin(), accounts.end(), account->id) != accounts.end());
}

}  // namespace mailroom
