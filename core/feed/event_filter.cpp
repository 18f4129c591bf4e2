#include "feed/event_filter.hpp"

#include <algorithm>

namespace mailroom {

bool EventFilter::wants_state(std::string_view state) const {
  return states.empty() || std::find(states.begin(), states.end(), state) != states.end();
}

bool EventFilter::may_want(EventKind kind) const {
  switch (source_of(kind)) {
    case EventSource::tokens:
      // The state of the token is not known yet.
      return states.empty() || wants_state("created") || wants_state("due") || wants_state("expired") ||
             wants_state("consumed") || wants_state("wrong-status");
    case EventSource::consumption:
      return wants_state("consumed");
    case EventSource::batches:
      return wants_state(kind_text(kind)) && !(kind == EventKind::skipped && asks_for_tokens());
    case EventSource::operations: {
      const bool is_of_an_account = kind == EventKind::suspended || kind == EventKind::restored;
      return wants_state(kind_text(kind)) && !action && (accounts.empty() || is_of_an_account);
    }
  }
  return true;
}

bool EventFilter::wants(const Event& event) const {
  const bool is_wanted =
      wants_state(event.state) || (event.kind == EventKind::created && wants_state("created"));
  if (!may_want(event.kind) || !is_wanted) return false;
  if (event.token && *event.token < from_token) return false;
  if (source_of(event.kind) == EventSource::batches) {
    return !asks_for_tokens() || (event.matches && !event.matches->empty());
  }
  if (action && event.action != *action) return false;
  return accounts.empty() ||
         (event.account && std::find(accounts.begin(), accounts.end(), *event.account) != accounts.end());
}

}  // namespace mailroom
