#pragma once

#include <string>
#include <vector>

#include "audit/history.hpp"
#include "cmd/audit_words.hpp"
#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

/// Claims one batch of `limit`, and acknowledges what is due of it as handed on.
inline Lease hand_on(QueueSession& session, int limit = 100) {
  const auto lease = session.claim({.limit = limit, .partial = true}).lease;
  REQUIRE(lease);
  session.claim({.limit = 0, .receipt = Receipt{*lease, fetch_due(session, *lease).counts}});
  return *lease;
}

using Words = std::vector<std::string>;

/// What a timeline says happened, in order.
inline Words words(const Timeline& timeline) {
  Words all;
  for (const auto& entry : timeline.entries)
    all.push_back(what_text(entry.what));
  return all;
}

}  // namespace mailroom::test
