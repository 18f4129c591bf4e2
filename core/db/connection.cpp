#include "db/connection.hpp"

#include <functional>
#include <unistd.h>

#include "base/actor.hpp"
#include "db/conninfo.hpp"
#include "db/search_path.hpp"
#include "db/time_sql.hpp"

namespace mailroom {
namespace {

/// PostgreSQL cuts an application_name to 63 bytes; shorten the name so that the pid survives.
std::string application_name(const std::string& purpose) {
  const std::string pid = ":" + std::to_string(getpid());
  const std::string name = purpose + "@" + host_name();
  return name.substr(0, 63 - pid.size()) + pid;
}

/// The last error message of libpq on a session. libpqxx keeps it private, but an explicit instantiation may
/// name a private member.
std::string last_text(const pqxx::connection& session);

template <auto text>
struct LastText {
  friend std::string last_text(const pqxx::connection& session) { return std::invoke(text, session); }
};
template struct LastText<&pqxx::connection::err_msg>;

}  // namespace

std::string session_conninfo(const std::string& conninfo, const std::string& purpose) {
  // Detect a lost peer within about 30 s, and give up on an address that does not answer after 10 s.
  return with_defaults(conninfo, {{"application_name", application_name(purpose)},
                                  {"client_encoding", "UTF8"},
                                  {"connect_timeout", "10"},
                                  {"keepalives_idle", "10"},
                                  {"keepalives_interval", "5"},
                                  {"keepalives_count", "3"},
                                  {"tcp_user_timeout", "30000"}});
}

Connection::Connection(const std::string& conninfo, const std::string& purpose) {
  const auto full = session_conninfo(conninfo, purpose);
  guarded([&] {
    session_ = std::make_unique<pqxx::connection>(full);
    pqxx_compat::forbid_silent_reconnection(*session_);
    // Keep the server's warnings out of the output.
    run("SET client_min_messages = error");
    run("SET bytea_output = hex");
    // From a database without an encoding read the bytes as they are: with UTF8 the server would refuse a
    // whole result for one invalid byte.
    run(R"(
SELECT set_config('client_encoding', 'SQL_ASCII', false)
WHERE current_setting('server_encoding') = 'SQL_ASCII')");
    require_search_path(*this, conninfo);
  });
}

Connection::~Connection() = default;

void Connection::rethrow() const {
  rethrow_database_error(session_ && session_->is_open(), session_ ? last_text(*session_) : std::string());
}

void Connection::prepare(const std::string& name, const std::string& sql) {
  guarded([&] { session_->prepare(name, sql); });
}

void Connection::listen(const std::string& channel, Senders senders) {
  guarded([&] {
    subscription_ = std::make_unique<pqxx_compat::Subscription>(
        *session_, channel, [this, senders](const std::string& payload, bool is_own) {
          if (senders == Senders::all || !is_own) payloads_.insert(payload);
        });
  });
}

std::set<std::string> Connection::take_payloads() {
  // On a session that it has closed libpqxx reports no notifications instead of an error.
  guarded([&] {
    if (!session_->is_open()) throw pqxx::broken_connection();
    session_->get_notifs();
  });
  return std::exchange(payloads_, {});
}

Moment Connection::server_time() {
  return moment_in<std::chrono::seconds>(
      run("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint")[0][0]);
}

void Connection::cancel() {
  try {
    // Thread-safe: reads only members that do not change while a statement runs.
    session_->cancel_query();
  } catch (const std::exception& error) {
    throw Error(ExitCode::database, error.what());
  }
}

int Connection::socket() const {
  return session_->sock();
}

int Connection::backend_pid() const {
  return session_->backendpid();
}

}  // namespace mailroom
