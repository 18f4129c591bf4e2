#pragma once

#include <memory>
#include <string>

#include "support/test_database.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test {

/// A database with accounts, and what the deliveries of their tokens became.
struct DeliveryRig {
  TestDatabase database;
  std::unique_ptr<Connection> connection = database.connect();

  explicit DeliveryRig(int accounts) { insert_accounts(*connection, accounts); }

  int count(const std::string& state) {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = '" + state + "'");
  }
  /// Deferred tokens are due.
  void due_now() {
    connection->run("UPDATE mailroom_deliveries SET not_before = '-infinity' WHERE not_before IS NOT NULL");
  }
};

}  // namespace mailroom::test
