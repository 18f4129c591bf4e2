#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <pqxx/pqxx>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "db/errors.hpp"
#include "db/pqxx_compat.hpp"

namespace mailroom {

/// What a session is made with: `conninfo`, and for what it does not set the purpose as application_name (see
/// Connection), UTF-8, and limits after which a peer that has vanished is given up.
std::string session_conninfo(const std::string& conninfo, const std::string& purpose);

/// One session of PostgreSQL. Never reconnects by itself, since locks and LISTEN would be gone in silence.
class Connection {
 public:
  /// Connects. `purpose` becomes the application_name (`mailroom collect`), with host and pid of this
  /// process. Throws ConnectionLost when it cannot, Error(configuration) for a malformed connection string.
  Connection(const std::string& conninfo, const std::string& purpose);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// One statement, committed by the server itself. Throws DatabaseError or ConnectionLost.
  template <typename... Arguments>
  pqxx::result run(const std::string& sql, const Arguments&... arguments) {
    return guarded([&] {
      pqxx::nontransaction alone(*session_);
      return execute(alone, sql, arguments...);
    });
  }

  /// Statements that the caller's `body(pqxx::transaction_base&)` runs with execute(), each committed by the
  /// server itself.
  template <typename Body>
  auto alone(Body&& body) {
    return guarded([&] {
      pqxx::nontransaction each(*session_);
      return body(each);
    });
  }

  /// Several statements that the caller's `body(pqxx::work&)` runs with execute(), committed when it returns.
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

  /// As transact(), but rolled back when `body` returns.
  template <typename Body>
  void rehearse(Body&& body) {
    guarded([&] {
      pqxx::work transaction(*session_);
      body(transaction);
      transaction.abort();
    });
  }

  /// Prepares `sql` under `name`, for run_prepared.
  void prepare(const std::string& name, const std::string& sql);

  template <typename... Arguments>
  pqxx::result run_prepared(const std::string& name, const Arguments&... arguments) {
    return guarded([&] {
      pqxx::nontransaction alone(*session_);
      return pqxx_compat::execute_prepared(alone, name, arguments...);
    });
  }

  /// Calls `each` with the fields of each row of `query`, an array of `columns` views that are valid during
  /// the call, while the server still makes the next rows. A null is empty. Committed when the last row has
  /// come. The rows come by COPY, which binds no values.
  template <std::size_t columns, typename Each>
  void copy_out(const std::string& query, const Each& each) {
    guarded([&] {
      pqxx::nontransaction alone(*session_);
      pqxx_compat::stream<columns>(alone, query, each);
    });
  }

  /// One statement within the caller's transaction: values are bound, never formatted into the text.
  template <typename... Arguments>
  static pqxx::result execute(pqxx::transaction_base& transaction, const std::string& sql,
                              const Arguments&... arguments) {
    if constexpr (sizeof...(Arguments) == 0) {
      return transaction.exec(sql);
    } else {
      return pqxx_compat::execute(transaction, sql, arguments...);
    }
  }

  /// Subscribes to a channel; take_notifications() tells of what came.
  void listen(const std::string& channel);

  /// The different texts of the notifications that have come since the last call, most often an empty one.
  /// Reads what the socket holds, waits for nothing. Throws ConnectionLost when the server has closed the
  /// session.
  std::set<std::string> take_payloads();
  /// As take_payloads(): true if a notification has come.
  bool take_notifications() { return !take_payloads().empty(); }

  /// The server's clock, in seconds since 1970: what expiry is decided by.
  std::int64_t server_time();

  /// Asks the server to give up the statement that another thread runs here; it fails with SQLSTATE 57014,
  /// unless it is over before. Throws Error(database) when the server cannot be asked.
  void cancel();

  /// For poll(2).
  int socket() const;
  int backend_pid() const;

 private:
  template <typename Body>
  auto guarded(Body&& body) -> decltype(body()) {
    try {
      return body();
    } catch (...) {
      rethrow();
    }
  }
  /// To be called in a catch block: see rethrow_database_error().
  [[noreturn]] void rethrow() const;

  std::unique_ptr<pqxx::connection> session_;
  std::unique_ptr<pqxx_compat::Subscription> subscription_;
  std::set<std::string> payloads_;
};

}  // namespace mailroom
