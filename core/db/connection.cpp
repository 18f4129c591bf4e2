// Connects within a time limit, sets the session up, and replaces libpqxx's errors by mailroom's.

#include "db/connection.hpp"

#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <future>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

#include "base/actor.hpp"
#include "base/clock.hpp"
#include "base/secret_file.hpp"
#include "base/threads.hpp"
#include "db/conninfo.hpp"
#include "db/open_sessions.hpp"
#include "db/search_path.hpp"
#include "db/values.hpp"

namespace mailroom::db {
namespace {

/// `mailroom collect alice@host:77`. PostgreSQL cuts an application_name to 63 bytes: the user is shortened
/// first, then the host, so that the pid survives.
std::string application_name(const std::string& purpose) {
  constexpr std::size_t longest = 63;
  const auto process = fmt::format("@{}:{}", host_name(), getpid());
  const auto taken = purpose.size() + 1 + process.size();
  const auto user = user_name().substr(0, taken < longest ? longest - taken : 0);
  const auto pid = process.substr(process.rfind(':'));
  const auto name = fmt::format("{} {}{}", purpose, user, process.substr(0, process.size() - pid.size()));
  return name.substr(0, longest - pid.size()) + pid;
}

/// The last error message of libpq on a session. libpqxx keeps it private, but an explicit instantiation may
/// name a private member.
std::string last_text(const pqxx::connection& session);

template <auto text>
struct LastText {
  friend std::string last_text(const pqxx::connection& session) { return std::invoke(text, session); }
};
template struct LastText<&pqxx::connection::err_msg>;

/// A password that is being replaced may be missing for a moment: then a later session finds it.
std::string current_password(const DatabaseTarget& target) {
  try {
    return read_password_file(target.password_file, target.allow_readable_file, "database.password_file");
  } catch (const Error& error) {
    throw ConnectionLost(error.what(), error.hint());
  }
}

}  // namespace

std::string session_conninfo(const DatabaseTarget& target, const std::string& purpose, Milliseconds answer) {
  auto conninfo = target.conninfo;
  if (!target.password_file.empty() && !has_password(conninfo))
    conninfo = with_defaults(conninfo, {{"password", current_password(target)}});
  // Detect a lost peer within about 30 s, and give up on an address that does not answer after 10 s.
  conninfo = with_fallbacks(conninfo, {{"application_name", application_name(purpose)},
                                       {"connect_timeout", "10"},
                                       {"keepalives_idle", "10"},
                                       {"keepalives_interval", "5"},
                                       {"keepalives_count", "3"},
                                       {"tcp_user_timeout", "30000"}});
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(answer).count();
  const auto given = connect_timeout_of(conninfo);
  if (seconds == 0 || (given > 0 && given <= seconds)) return conninfo;
  return with_option(conninfo, {"connect_timeout", std::to_string(seconds)});
}

Connection::Connection(const DatabaseTarget& target, const std::string& purpose, SessionLimits limits)
    : target_(target), purpose_(purpose), limits_(limits) {
  const auto conninfo = session_conninfo(target_, purpose_, limits_.answer);
  guarded([&] { open(conninfo); });
  const auto given = connect_timeout_of(conninfo);
  within(limits_.answer > Milliseconds{0} ? limits_.answer : std::chrono::seconds(given),
         [this] { set_up(); });
  if (target_.schema.empty()) require_search_path(*this, target_.conninfo);
  add_session(*this);
}

void Connection::open(const std::string& conninfo) {
  session_ = std::make_unique<pqxx::connection>(conninfo);
  pqxx_compat::forbid_silent_reconnection(*session_);
}

void Connection::within(Milliseconds limit, const std::function<void()>& work) {
  if (limit <= Milliseconds{0}) return work();
  std::future<void> done;
  {
    const BlockedSignals blocked;
    done = std::async(std::launch::async, work);
  }
  // Wakes the thread: it reads the end of the stream.
  const bool is_late = done.wait_for(limit) == std::future_status::timeout;
  if (is_late) shutdown(session_->sock(), SHUT_RDWR);
  try {
    done.get();
  } catch (const ConnectionLost&) {
    if (!is_late) throw;
    throw ConnectionLost("no answer within " + format_duration(limit) +
                         ": the server or a pooler in front of it has accepted the session and lets it wait");
  }
}

void Connection::forget_login() {
  explicit_bzero(target_.conninfo.data(), target_.conninfo.size());
  target_.conninfo.clear();
}

void Connection::set_up() {
  guarded([&] {
    {
      pqxx::nontransaction alone(*session_);
      facts_ = read_session_facts(execute(alone, session_facts_sql, target_.schema)[0], target_.schema);
    }
    if (is_own_ || facts_.pid == session_->backendpid()) return own_session();
    transaction_settings_ = session_settings(facts_, limits_.statement, true);
  });
  if (!transaction_settings_.empty()) try_transaction();
}

void Connection::own_session() {
  is_own_ = true;
  transaction_settings_.clear();
  const auto sql = session_settings(facts_, limits_.statement, false);
  guarded([&] {
    pqxx::nontransaction alone(*session_);
    execute(alone, sql);
  });
}

void Connection::try_transaction() {
  try {
    transact([](pqxx::work&) {});
  } catch (const Error& error) {
    // A pooler in statement mode ends the session that begins a transaction. Without one there are no
    // settings, which a schema of our own needs.
    if (error.code() != ExitCode::configuration || !target_.schema.empty()) throw;
    transaction_settings_.clear();
    guarded([&] { open(session_conninfo(target_, purpose_, limits_.answer)); });
  }
}

Connection::~Connection() {
  remove_session(*this);
}

void Connection::rethrow() const {
  if (const int number = interrupting_signal(); number != 0) throw Interrupted(number);
  rethrow_database_error(session_ && session_->is_open(), session_ ? last_text(*session_) : std::string());
}

void Connection::prepare(const std::string& name, const std::string& sql) {
  const auto& known = prepared_.emplace(name, Prepared{sql}).first->second;
  if (known.sql != sql) throw std::logic_error("there is another prepared statement of the name " + name);
}

void Connection::have_prepared(const std::string& name) {
  auto& prepared = prepared_.at(name);
  if (prepared.is_known) return;
  guarded([&] { session_->prepare(name, prepared.sql); });
  prepared.is_known = true;
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
  return run("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint").moment<std::chrono::seconds>();
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

}  // namespace mailroom::db
