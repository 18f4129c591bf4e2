#pragma once

#include <string>
#include <vector>

#include "audit/history.hpp"
#include "cmd/audit_words.hpp"
#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

/// Claims one batch of `limit`, and acknowledges it as handed on in full.
inline Lease hand_on(QueueSession& session, int limit = 100) {
  const auto lease = session.claim({.limit = limit, .partial = true}).lease;
  REQUIRE(lease);
  const auto count = static_cast<int>(fetch_ids(session, *lease).size());
  session.claim({.limit = 0, .receipt = Receipt{*lease, {.emitted = count}}});
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
