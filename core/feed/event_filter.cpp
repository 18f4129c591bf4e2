#include "feed/event_filter.hpp"

#include <algorithm>

namespace mailroom {

bool EventFilter::wants_state(std::string_view state) const {
  return states.empty() || std::find(states.begin(), states.end(), state) != states.end();
}

bool EventFilter::may_want(EventWord word) const {
  switch (source_of(word)) {
    case EventSource::tokens:
      // Any of the states of a token, which is not known yet.
      return states.empty() || wants_state("created") || wants_state("due") || wants_state("expired") ||
             wants_state("consumed") || wants_state("wrong-status");
    case EventSource::consumption:
      return wants_state("consumed");
    case EventSource::batches:
      return wants_state(word_text(word)) && !(word == EventWord::passed_over && asks_for_tokens());
    case EventSource::operations: {
      const bool is_of_an_account = word == EventWord::suspended || word == EventWord::restored;
      return wants_state(word_text(word)) && !action && (accounts.empty() || is_of_an_account);
    }
  }
  return true;
}

bool EventFilter::wants(const Event& event) const {
  const bool is_wanted =
      wants_state(event.state) || (event.word == EventWord::created && wants_state("created"));
  if (!may_want(event.word) || !is_wanted) return false;
  if (event.token && *event.token < from_token) return false;
  if (source_of(event.word) == EventSource::batches) {
    return !asks_for_tokens() || (event.matches && !event.matches->empty());
  }
  if (action && event.action != *action) return false;
  return accounts.empty() ||
         (event.account && std::find(accounts.begin(), accounts.end(), *event.account) != accounts.end());
}

}  // namespace mailroom
