#pragma once

#include <string>

#include "support/test_database.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

/// A database with accounts, and what the deliveries of their tokens became.
struct DeliveryRig : DatabaseRig {
  explicit DeliveryRig(int accounts) { insert_accounts(*connection, accounts); }

  int count(const std::string& state) {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = '" + state + "'");
  }
  /// `1 accepted 1, 2 deferred 1`: token, state and attempts.
  std::string deliveries() {
    return value<std::string>(
        *connection,
        "SELECT coalesce(string_agg(token || ' ' || state || ' ' || attempts, ', ' ORDER BY token), '') "
        "FROM mailroom_deliveries");
  }
  void due_now() { test::due_now(*connection); }
};

}  // namespace mailroom::test
