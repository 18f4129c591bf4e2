// The database as every command uses it: sessions with their settings, statements, transactions,
// notifications, cancellation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.hpp"
#include "db/conninfo.hpp"
#include "db/errors.hpp"
#include "db/pqxx_compat.hpp"
#include "db/rows.hpp"

namespace mailroom::db {

/// How long a session waits; 0: as long as the connection string, the environment or our defaults say.
struct SessionLimits {
  Milliseconds answer{0};     ///< to connect, and again for the first answer: a pooler may keep it waiting
  Milliseconds statement{0};  ///< statement_timeout; 0: none
};

/// What the settings of a session depend on.
struct SessionFacts {
  int pid = 0;      ///< of the server process that answered
  int version = 0;  ///< of the server: 150004 for 15.4
  std::string encoding{};
  bool in_recovery = false;
  bool schema_exists = true;  ///< the configured one; true without one
  bool may_use_schema = true;
  std::string search_path{};  ///< quoted as SET needs it; empty: the role's
};

/// Reads SessionFacts; $1 is the configured schema, or empty.
extern const char* const session_facts_sql;
SessionFacts read_session_facts(const Row& row, const std::string& schema);

/// The statements that give a session, or with `for_transaction` the transaction that has just begun, the
/// settings that every command relies on, whatever the role, the database or the server has set: PostgreSQL's
/// own defaults, without JIT and time limits. `statement_limit` of zero: none.
std::string session_settings(const SessionFacts& facts, Milliseconds statement_limit, bool for_transaction);

/// The connection string for a session of `target`: its password, the purpose as application_name (see
/// Connection), and timeouts that detect a lost peer. Throws ConnectionLost if the password file cannot be
/// read now.
std::string session_conninfo(const DatabaseTarget& target, const std::string& purpose,
                             Milliseconds answer = Milliseconds{0});

/// One PostgreSQL session. Never reconnects by itself, since that would silently drop locks and LISTEN.
class Connection {
 public:
  /// Connects and sets the session up (see session_settings()), for which no `options` are needed, so that it
  /// works behind a pooler too. The application_name is `purpose` (`mailroom collect`) with host and pid of
  /// this process, unless libpq's variables or the connection string name another. Throws ConnectionLost if
  /// it cannot connect or gets no answer in time, Error(configuration) for a malformed connection string.
  Connection(const DatabaseTarget& target, const std::string& purpose, SessionLimits limits = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sets the session up again, for a schema that exists since. Behind a pooler the settings belong to each
  /// transaction, since another client may get the server process next.
  void set_up();
  /// Behind a pooler that leaves this session its server process: gives the settings to the session.
  void own_session();
  /// What the last set_up() found.
  const SessionFacts& facts() const { return facts_; }
  /// The configured schema; empty for none.
  const std::string& schema() const { return target_.schema; }

  /// Runs one statement in autocommit mode. Throws DatabaseError or ConnectionLost.
  template <typename... Arguments>
  Rows run(const std::string& sql, const Arguments&... arguments) {
    return alone(
        [&](pqxx::transaction_base& transaction) { return execute(transaction, sql, arguments...); });
  }

  /// Runs one SELECT whose values come as the server sends them in binary: bytea as its bytes, text as text.
  /// Row::view() reads them, and no other member does. Values are formatted into its text.
  Rows run_binary(const std::string& select) {
    // libpqxx asks for text; FETCH returns what its cursor has. The statements are one round trip.
    return run("DECLARE mailroom_binary NO SCROLL BINARY CURSOR FOR " + select +
               "; FETCH ALL FROM mailroom_binary");
  }

  /// Calls `body(pqxx::transaction_base&)`, which runs statements with execute(), each in autocommit mode;
  /// behind a pooler, all in one transaction.
  template <typename Body>
  auto alone(Body&& body) {
    return guarded([&] {
      if (!transaction_settings_.empty()) return committed(body);
      pqxx::nontransaction each(*session_);
      return body(static_cast<pqxx::transaction_base&>(each));
    });
  }

  /// Calls `body(pqxx::work&)` in a transaction. Commits when `body` returns, rolls back when it throws.
  template <typename Body>
  auto transact(Body&& body) {
    return guarded([&] { return committed(body); });
  }

  /// As transact(), but rolls back when `body` returns.
  template <typename Body>
  void dry_run(Body&& body) {
    guarded([&] {
      pqxx::work transaction(*session_);
      begin(transaction);
      body(transaction);
      transaction.abort();
    });
  }

  /// Has `sql` prepared as `name` when run_prepared() first runs it: the server refuses to prepare a
  /// statement on a table with row security, and a consumer does not run all that it could. Throws
  /// std::logic_error if `name` stands for another statement.
  void prepare(const std::string& name, const std::string& sql);

  template <typename... Arguments>
  Rows run_prepared(const std::string& name, const Arguments&... arguments) {
    have_prepared(name);
    return alone([&](pqxx::transaction_base& transaction) {
      return pqxx_compat::execute_prepared(transaction, name, arguments...);
    });
  }

  /// Runs one statement within the caller's transaction. Values are bound, never formatted into the text.
  template <typename... Arguments>
  static Rows execute(pqxx::transaction_base& transaction, const std::string& sql,
                      const Arguments&... arguments) {
    if constexpr (sizeof...(Arguments) == 0) {
      return transaction.exec(sql);
    } else {
      return pqxx_compat::execute(transaction, sql, arguments...);
    }
  }

  /// Whose notifications are received: those of this session too, or not.
  enum class Senders { all, others };
  /// Subscribes to a channel; take_payloads() returns the notifications.
  void listen(const std::string& channel, Senders senders = Senders::all);

  /// The distinct payloads of the notifications since the last call; most payloads are empty. Reads what the
  /// socket holds and does not wait. Throws ConnectionLost if the server has closed the session.
  std::set<std::string> take_payloads();
  /// As take_payloads(); true if there was a notification.
  bool take_notifications() { return !take_payloads().empty(); }

  /// The server's clock in whole seconds, which decides expiry.
  Moment server_time();

  /// Cancels the statement that another thread runs on this connection. Unless it has ended, it fails with
  /// SQLSTATE 57014. Throws Error(database) if the request cannot be sent.
  void cancel();

  /// Keeps no connection string any more, and so no password. set_up() must not follow.
  void forget_login();

  /// For poll(2).
  int socket() const;
  int backend_pid() const;

  /// Odd while a statement or a transaction runs, and another number for each; for another thread, also after
  /// the end of the connection.
  std::shared_ptr<const std::atomic<std::uint64_t>> activity() const { return activity_; }

 private:
  void open(const std::string& conninfo);
  /// Calls `work`, which waits for the server, on another thread. Throws ConnectionLost if it takes longer.
  void within(Milliseconds limit, const std::function<void()>& work);
  void have_prepared(const std::string& name);
  /// Finds out whether the pooler allows transactions at all.
  void try_transaction();
  void begin(pqxx::transaction_base& transaction) {
    if (!transaction_settings_.empty()) transaction.exec(transaction_settings_);
  }

  template <typename Body>
  auto committed(Body&& body) {
    pqxx::work transaction(*session_);
    begin(transaction);
    if constexpr (std::is_void_v<decltype(body(transaction))>) {
      body(transaction);
      transaction.commit();
    } else {
      auto result = body(transaction);
      transaction.commit();
      return result;
    }
  }

  /// While it exists, the connection is busy.
  struct Busy {
    explicit Busy(std::atomic<std::uint64_t>& activity)
        : activity_(activity), is_outermost_(activity % 2 == 0) {
      if (is_outermost_) ++activity_;
    }
    ~Busy() {
      if (is_outermost_) ++activity_;
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    std::atomic<std::uint64_t>& activity_;
    bool is_outermost_;
  };

  template <typename Body>
  auto guarded(Body&& body) -> decltype(body()) {
    const Busy busy(*activity_);
    try {
      return body();
    } catch (...) {
      rethrow();
    }
  }
  /// Must be called in a catch block: see rethrow_database_error().
  [[noreturn]] void rethrow() const;

  DatabaseTarget target_;
  std::string purpose_;
  SessionLimits limits_;
  SessionFacts facts_;
  bool is_own_ = false;               ///< behind a pooler: own_session() was called
  std::string transaction_settings_;  ///< for each transaction behind a pooler; otherwise empty
  std::shared_ptr<std::atomic<std::uint64_t>> activity_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::unique_ptr<pqxx::connection> session_;
  std::unique_ptr<pqxx_compat::Subscription> subscription_;
  std::set<std::string> payloads_;
  struct Prepared {
    std::string sql;
    bool is_known = false;  ///< to the server
  };
  std::map<std::string, Prepared> prepared_;  ///< by name
};

}  // namespace mailroom::db
