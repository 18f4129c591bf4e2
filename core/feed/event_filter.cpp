#include <algorithm>

#include "feed/past_events.hpp"

namespace mailroom {

EventSource source_of(EventKind kind) {
  if (kind == EventKind::created || kind == EventKind::consumed) return EventSource::tokens;
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
  if (!wants_state(kind_text(kind))) return false;
  if (source_of(kind) == EventSource::batches) return !(kind == EventKind::skipped && asks_for_tokens());
  if (source_of(kind) == EventSource::tokens) return true;
  const bool is_of_account = kind == EventKind::suspended || kind == EventKind::restored;
  return !action && (accounts.empty() || is_of_account);
}

bool EventFilter::wants(const Event& event) const {
  const bool is_wanted =
      wants_state(event.state()) || (event.kind == EventKind::created && wants_state("created"));
  if (!may_want(event.kind) || !is_wanted) return false;
  if (event.batch() != nullptr) return !asks_for_tokens() || (event.matches && !event.matches->empty());
  if (const auto* token = event.token()) {
    if (token->id < from_token || (action && token->action != *action)) return false;
  }
  const auto* account = event.account();
  return accounts.empty() ||
         (account != nullptr && std::find(accounts.begin(), accounts.end(), account->id) != accounts.end());
}

}  // namespace mailroom
