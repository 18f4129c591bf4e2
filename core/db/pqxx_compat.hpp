// One interface to libpqxx 6 and 7, which Debian 12 and 13 ship.
#pragma once

#include <functional>
#include <pqxx/pqxx>
#include <string>

#if PQXX_VERSION_MAJOR > 7 || (PQXX_VERSION_MAJOR == 7 && PQXX_VERSION_MINOR >= 10)
#define MAILROOM_PQXX_7_10
#endif

/// Differences between the versions of libpqxx. No other file checks the version.
namespace mailroom::db::pqxx_compat {

/// Runs one statement with bound values; std::nullopt is bound as NULL.
template <typename... Arguments>
pqxx::result execute(pqxx::transaction_base& transaction, const std::string& sql,
                     const Arguments&... arguments) {
#ifdef MAILROOM_PQXX_7_10
  return transaction.exec(sql, pqxx::params{arguments...});
#else
  return transaction.exec_params(sql, arguments...);
#endif
}

/// As execute(), for a prepared statement.
template <typename... Arguments>
pqxx::result execute_prepared(pqxx::transaction_base& transaction, const std::string& name,
                              const Arguments&... arguments) {
#ifdef MAILROOM_PQXX_7_10
  return transaction.exec(pqxx::prepped{name}, pqxx::params{arguments...});
#else
  return transaction.exec_prepared(name, arguments...);
#endif
}

/// Called with the payload of each notification, and whether the session itself has sent it.
using Receive = std::function<void(const std::string& payload, bool is_own)>;

/// Receives the notifications on `channel`. Must not outlive `session`.
#ifdef MAILROOM_PQXX_7_10
class Subscription {
 public:
  Subscription(pqxx::connection& session, const std::string& channel, Receive receive) {
    session.listen(channel, [&session, receive = std::move(receive)](const pqxx::notification& arrived) {
      receive(std::string(arrived.payload), arrived.backend_pid == session.backendpid());
    });
  }
};
#else
class Subscription final : public pqxx::notification_receiver {
 public:
  Subscription(pqxx::connection& session, const std::string& channel, Receive receive)
      : pqxx::notification_receiver(session, channel), receive_(std::move(receive)) {}
  void operator()(const std::string& payload, int backend_pid) override {
    receive_(payload, backend_pid == conn().backendpid());
  }

 private:
  Receive receive_;
};
#endif

/// libpqxx 6 would silently open a new session when one has ended.
inline void forbid_silent_reconnection([[maybe_unused]] pqxx::connection& session) {
#if PQXX_VERSION_MAJOR < 7
#include <pqxx/internal/ignore-deprecated-pre.hxx>
  session.inhibit_reactivation(true);
#include <pqxx/internal/ignore-deprecated-post.hxx>
#endif
}

}  // namespace mailroom::db::pqxx_compat

#undef MAILROOM_PQXX_7_10
