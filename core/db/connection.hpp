#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "base/moment.hpp"
#include "db/errors.hpp"
#include "db/pqxx_compat.hpp"

namespace mailroom {

/// `conninfo` with defaults for a session: the purpose as application_name (see Connection), UTF-8, and
/// timeouts that detect a lost peer.
std::string session_conninfo(const std::string& conninfo, const std::string& purpose);

/// The value of a field of a row; nullopt for a null.
template <typename T, typename Field>
std::optional<T> optional_of(const Field& field) {
  return field.is_null() ? std::nullopt : std::optional<T>(field.template as<T>());
}

/// One PostgreSQL session. Never reconnects by itself, since that would silently drop locks and LISTEN.
class Connection {
 public:
  /// Connects. The application_name is `purpose` (`mailroom collect`) with host and pid of this process.
  /// Throws ConnectionLost if it cannot connect, Error(configuration) for a malformed connection string.
  Connection(const std::string& conninfo, const std::string& purpose);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs one statement in autocommit mode. Throws DatabaseError or ConnectionLost.
  template <typename... Arguments>
  pqxx::result run(const std::string& sql, const Arguments&... arguments) {
    return guarded([&] {
      pqxx::nontransaction alone(*session_);
      return execute(alone, sql, arguments...);
    });
  }

  /// Calls `body(pqxx::transaction_base&)`, which runs statements with execute(), each in autocommit mode.
  template <typename Body>
  auto alone(Body&& body) {
    return guarded([&] {
      pqxx::nontransaction each(*session_);
      return body(each);
    });
  }

  /// Calls `body(pqxx::work&)` in a transaction. Commits when `body` returns, rolls back when it throws.
  template <typename Body>
  auto transact(Body&& body) {
    return guarded([&] {
      pqxx::work transaction(*session_);
      if constexpr (std::is_void_v<decltype(body(transaction))>) {
        body(transaction);
        transaction.commit();
      } else {
        auto result = body(transaction);
        transaction.commit();
        return result;
      }
    });
  }

  /// As transact(), but rolls back when `body` returns.
  template <typename Body>
  void dry_run(Body&& body) {
    guarded([&] {
      pqxx::work transaction(*session_);
      body(transaction);
      transaction.abort();
    });
  }

  /// Prepares `sql` as `name`, for run_prepared().
  void prepare(const std::string& name, const std::string& sql);

  template <typename... Arguments>
  pqxx::result run_prepared(const std::string& name, const Arguments&... arguments) {
    return guarded([&] {
      pqxx::nontransaction alone(*session_);
      return pqxx_compat::execute_prepared(alone, name, arguments...);
    });
  }

  /// Streams the rows of `query` by COPY, which binds no values. Calls `each` with an array of `columns`
  /// views, valid during the call; a null is empty. Runs in autocommit mode.
  template <std::size_t columns, typename Each>
  void copy_out(const std::string& query, const Each& each) {
    guarded([&] {
      pqxx::nontransaction alone(*session_);
      pqxx_compat::stream<columns>(alone, query, each);
    });
  }

  /// Runs one statement within the caller's transaction. Values are bound, never formatted into the text.
  template <typename... Arguments>
  static pqxx::result execute(pqxx::transaction_base& transaction, const std::string& sql,
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

  /// For poll(2).
  int socket() const;
  int backend_pid() const;

  /// True while a statement or a transaction runs; for another thread, also after the end of the connection.
  std::shared_ptr<const std::atomic<bool>> busy() const { return busy_; }

 private:
  /// While it exists, the connection is busy.
  struct Busy {
    explicit Busy(std::atomic<bool>& flag) : flag_(flag) { flag_ = true; }
    ~Busy() { flag_ = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    std::atomic<bool>& flag_;
  };

  template <typename Body>
  auto guarded(Body&& body) -> decltype(body()) {
    const Busy busy(*busy_);
    try {
      return body();
    } catch (...) {
      rethrow();
    }
  }
  /// Must be called in a catch block: see rethrow_database_error().
  [[noreturn]] void rethrow() const;

  std::shared_ptr<std::atomic<bool>> busy_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<pqxx::connection> session_;
  std::unique_ptr<pqxx_compat::Subscription> subscription_;
  std::set<std::string> payloads_;
};

}  // namespace mailroom
