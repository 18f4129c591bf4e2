#pragma once

#include <string>
#include <vector>

#include "audit/history.hpp"
#include "cmd/audit/audit_report.hpp"
#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

/// Claims one batch of `limit`, and acknowledges its due tokens as emitted.
inline claim::Lease emit(claim::QueueSession& session, int limit = 100) {
  const auto lease = session.claim({.limit = limit, .partial = true}).lease;
  REQUIRE(lease);
  session.claim({.limit = 0, .receipt = claim::Receipt{*lease, fetch_due(session, *lease).counts}});
  return *lease;
}

using Names = std::vector<std::string>;

/// The events of a timeline as text, in order.
inline Names event_names(const audit::Timeline& timeline) {
  Names all;
  for (const auto& entry : timeline.entries)
    all.emplace_back(cmd::event_name(entry));
  return all;
}

}  // namespace mailroom::test
