#pragma once

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "support/test_database.hpp"

namespace mailroom::test {

/// Sessions that create accounts, consume tokens and suspend accounts at random, in transactions that are
/// held open for a while. Some savepoints and some transactions are rolled back.
class BusyWriters {
 public:
  BusyWriters(const TestDatabase& database, int count, unsigned seed) : database_(database) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this, i, seed] { write(i, seed + static_cast<unsigned>(i)); });
  }
  ~BusyWriters() { finish(); }
  BusyWriters(const BusyWriters&) = delete;
  BusyWriters& operator=(const BusyWriters&) = delete;

  /// Stops the writers; returns how many transactions the server refused, for example after a deadlock.
  int finish() {
    stop_ = true;
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
    return refused_;
  }

 private:
  struct Dice {
    std::mt19937 random;
    bool one_in(int n) { return std::uniform_int_distribution<int>(1, n)(random) == 1; }
    int up_to(int n) { return std::uniform_int_distribution<int>(0, n)(random); }
  };

  void write(int writer, unsigned seed) {
    Dice dice{std::mt19937(seed)};
    const auto connection = database_.connect("writer");
    for (int round = 0; !stop_; ++round) {
      try {
        one_transaction(*connection, dice, "w" + std::to_string(writer) + "-" + std::to_string(round) + "-");
      } catch (const db::DatabaseError&) {
        ++refused_;
        connection->run("ROLLBACK");
      }
    }
  }

  void one_transaction(db::Connection& connection, Dice& dice, const std::string& prefix) {
    connection.run("BEGIN");
    for (int i = 0, steps = 1 + dice.up_to(3); i < steps; ++i) {
      const bool within = dice.one_in(2);
      if (within) connection.run("SAVEPOINT s");
      one_step(connection, dice, prefix + std::to_string(i) + "-");
      if (within) connection.run(dice.one_in(3) ? "ROLLBACK TO s" : "RELEASE s");
      if (dice.one_in(6)) std::this_thread::sleep_for(std::chrono::milliseconds(dice.up_to(400)));
    }
    connection.run(dice.one_in(5) ? "ROLLBACK" : "COMMIT");
  }

  static void one_step(db::Connection& connection, Dice& dice, const std::string& prefix) {
    if (dice.one_in(2)) {
      insert_accounts(connection, 1 + dice.up_to(3), prefix);
    } else if (dice.one_in(4)) {
      connection.run(
          "UPDATE accounts SET status = CASE WHEN status = 'suspended' THEN 'active'::account_status ELSE "
          "'suspended' END WHERE id = (SELECT id FROM accounts ORDER BY random() LIMIT 1 FOR UPDATE SKIP "
          "LOCKED)");
    } else {
      connection.run(
          "UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id IN (SELECT id FROM tokens "
          "WHERE consumed_at IS NULL ORDER BY random() LIMIT 2 FOR UPDATE SKIP LOCKED)");
    }
  }

  const TestDatabase& database_;
  std::atomic<bool> stop_{false};
  std::atomic<int> refused_{0};
  std::vector<std::thread> threads_;
};

}  // namespace mailroom::test
