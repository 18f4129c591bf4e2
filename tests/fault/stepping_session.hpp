#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

struct pg_conn;
struct pg_result;

namespace mailroom::test {

/// What the server says to a statement.
struct ServerAnswer {
  using Row = std::map<std::string, std::optional<std::string>>;

  std::string error{};  ///< SQLSTATE and message; empty if it succeeded
  std::string tag{};    ///< of the last statement, such as COMMIT
  std::vector<Row> rows{};

  /// The first value; empty for none.
  std::string value() const;
};

/// A session of PostgreSQL that does not hold up its caller while a statement waits for another session.
class SteppingSession {
 public:
  using Values = std::vector<std::optional<std::string>>;

  explicit SteppingSession(const std::string& conninfo);

  int pid() const { return pid_; }
  /// Sends statements; none may be under way.
  void send(const std::string& sql);
  void send_prepared(const std::string& name, const Values& values);
  /// Sends statements and waits for the answer. Throws std::runtime_error for an error.
  ServerAnswer run(const std::string& sql);
  bool is_under_way() const { return is_under_way_; }
  /// Reads what has come, and waits for more; true if the statement has ended.
  bool ends_within(Milliseconds patience);
  /// Of the statement that has ended last.
  const ServerAnswer& answer() const { return answer_; }
  bool is_in_transaction() const;
  /// True if a notification has come since the last call: one round trip brings all that were sent before.
  bool take_notifications();

 private:
  void begin(int sent);
  void keep(pg_result* result);

  std::unique_ptr<pg_conn, void (*)(pg_conn*)> connection_;
  int pid_ = 0;
  bool is_under_way_ = false;
  ServerAnswer answer_{};
};

}  // namespace mailroom::test
