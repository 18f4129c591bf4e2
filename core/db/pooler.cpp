// Compares the server processes of two sessions, several times: an idle pooler looks like none.

#include "db/pooler.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <memory>
#include <poll.h>

#include "base/clock.hpp"

namespace mailroom::db {
namespace {

constexpr Milliseconds patience{1000};
constexpr int rounds = 3;

int ask_pid(Connection& connection) {
  return connection.run("SELECT pg_backend_pid()").value<int>();
}

/// A second connection with a timeout of its own: a pooler whose server processes are all busy lets it wait.
class Probe {
 public:
  explicit Probe(const std::string& conninfo)
      : session_(PQconnectStart(conninfo.c_str()), PQfinish), until_(steady_now() + patience) {
    connected_ = session_ && PQstatus(session_.get()) != CONNECTION_BAD && connect();
  }

  /// Returns the one value of `sql`, or nullopt if there was no answer in time.
  std::optional<std::string> ask(const char* sql) {
    if (!connected_ || PQsendQuery(session_.get(), sql) == 0) return std::nullopt;
    std::optional<std::string> answer;
    while (await_result()) {
      const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQgetResult(session_.get()), PQclear);
      if (!result) return answer;
      if (PQresultStatus(result.get()) == PGRES_COMMAND_OK) answer.emplace();
      if (PQresultStatus(result.get()) == PGRES_TUPLES_OK) answer = PQgetvalue(result.get(), 0, 0);
    }
    connected_ = false;
    return std::nullopt;
  }

  /// False if the pooler refuses BEGIN because it is in statement mode.
  bool allows_transactions() {
    if (ask("BEGIN")) return true;
    return std::string(PQerrorMessage(session_.get())).find("statement pooling mode") == std::string::npos;
  }

 private:
  bool connect() {
    for (;;) {
      switch (PQconnectPoll(session_.get())) {
        case PGRES_POLLING_OK:
          return true;
        case PGRES_POLLING_FAILED:
          return false;
        case PGRES_POLLING_READING:
          if (!await(POLLIN)) return false;
          break;
        default:
          if (!await(POLLOUT)) return false;
      }
    }
  }

  bool await_result() {
    while (PQisBusy(session_.get()) != 0) {
      if (!await(POLLIN) || PQconsumeInput(session_.get()) == 0) return false;
    }
    return true;
  }

  bool await(short events) const {
    const auto left = std::chrono::ceil<Milliseconds>(until_ - steady_now()).count();
    pollfd waiting{PQsocket(session_.get()), events, 0};
    return left > 0 && poll(&waiting, 1, static_cast<int>(left)) > 0;
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> session_;
  TimePoint until_;
  bool connected_ = false;
};

bool is_shared(const PoolerFacts& facts) {
  return facts.other == facts.first || facts.again != facts.first;
}

/// A pooler assigns the most recently used server process to the next client, so an idle pooler looks like a
/// session of one's own. Therefore a second client asks in turn, several rounds, since other clients ask too.
PoolerFacts read_pooler_facts(Connection& connection, const DatabaseTarget& target,
                              const std::string& purpose) {
  PoolerFacts facts{.announced = connection.backend_pid(), .first = ask_pid(connection)};
  facts.again = facts.first;
  if (facts.announced == facts.first) return facts;
  Probe second(session_conninfo(target, purpose));
  for (int round = 0; round < rounds && !is_shared(facts); ++round) {
    const auto pid = second.ask("SELECT pg_backend_pid()");
    if (!pid) break;
    facts.other = std::atoi(pid->c_str());
    facts.again = ask_pid(connection);
  }
  if (is_shared(facts)) facts.allows_transactions = second.allows_transactions();
  return facts;
}

}  // namespace

const char* const pooler_hint =
    "connect to the server directly, or set pool_mode = session for this database";

PoolerKind judge_pooler(const PoolerFacts& facts) {
  if (facts.announced == facts.first) return PoolerKind::none;
  if (!is_shared(facts)) return PoolerKind::session;
  return facts.allows_transactions ? PoolerKind::transaction : PoolerKind::statement;
}

PoolerKind find_pooler(Connection& connection, const DatabaseTarget& target, const std::string& purpose) {
  const auto kind = judge_pooler(read_pooler_facts(connection, target, purpose));
  if (kind == PoolerKind::session) connection.own_session();
  return kind;
}

std::string pooler_text(PoolerKind kind) {
  return fmt::format(
      "the connection goes through a pooler in {}: a session's locks, LISTEN, settings and prepared "
      "statements, and with them a collector's lease, are lost or reach other clients",
      kind == PoolerKind::statement ? "statement mode, which also refuses transactions" : "transaction mode");
}

std::string direct_conninfo(Connection& connection) {
  // pg_settings has no row for a setting that this role may not see.
  const auto row = connection.run(R"(
SELECT
  coalesce(host(inet_server_addr()),
           (SELECT split_part(setting, ',', 1) FROM pg_settings WHERE name = 'unix_socket_directories')) AS host,
  coalesce(inet_server_port(), current_setting('port')::integer) AS port, current_database(), session_user)")
                       [0];
  if (row.is_null("host")) return {};
  return fmt::format("host={} port={} dbname={} user={}", row.text("host"), row.text("port"),
                     row.text("current_database"), row.text("session_user"));
}

void require_own_session(Connection& connection, const DatabaseTarget& target, const std::string& purpose) {
  const auto kind = find_pooler(connection, target, purpose);
  if (kind != PoolerKind::transaction && kind != PoolerKind::statement) return;
  const auto direct = direct_conninfo(connection);
  throw Error(ExitCode::configuration, pooler_text(kind),
              pooler_hint + (direct.empty() ? "" : ": export MAILROOM_DATABASE_URL='" + direct + "'"));
}

}  // namespace mailroom::db
