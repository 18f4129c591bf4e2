#include "doctor/pooler_check.hpp"

#include <fmt/format.h>

namespace mailroom {
namespace {

int ask_pid(Connection& connection) {
  return connection.run("SELECT pg_backend_pid()")[0][0].as<int>();
}

/// A pooler hands the server process that was used last to whoever asks next, so that a quiet one looks like
/// a session as long as nobody else asks. So somebody else does.
PoolerFacts read_pooler_facts(Subject& subject) {
  auto& connection = *subject.connection;
  PoolerFacts facts{.announced = connection.backend_pid(), .first = ask_pid(connection)};
  if (facts.announced == facts.first) return facts;
  Connection second(subject.settings->database_url, "mailroom doctor");
  facts.first = ask_pid(connection);
  second.transact([&](pqxx::work& transaction) {
    facts.other = Connection::execute(transaction, "SELECT pg_backend_pid()")[0][0].as<int>();
    // With a pool of one process the first connection would wait for it for ever.
    facts.again = facts.other == facts.first ? 0 : ask_pid(connection);
  });
  return facts;
}

/// A connection string of the server as the pooler reaches it.
std::string direct_conninfo(Connection& connection) {
  const auto row = connection.run(
      "SELECT coalesce(host(inet_server_addr()), split_part(current_setting('unix_socket_directories'), ',', "
      "1)), coalesce(inet_server_port(), current_setting('port')::integer), current_database(), "
      "session_user")[0];
  return fmt::format("host={} port={} dbname={} user={}", row[0].c_str(), row[1].c_str(), row[2].c_str(),
                     row[3].c_str());
}

}  // namespace

PoolerKind judge_pooler(const PoolerFacts& facts) {
  if (facts.announced == facts.first) return PoolerKind::none;
  const bool shared = facts.other == facts.first || facts.again != facts.first;
  return shared ? PoolerKind::transaction : PoolerKind::session;
}

Findings check_pooler(Subject& subject) {
  subject.pooler = judge_pooler(read_pooler_facts(subject));
  if (subject.pooler == PoolerKind::none) return {fine("none between")};
  if (subject.pooler == PoolerKind::session) return {fine("one that gives each session its server process")};
  return {
      failure("a pooler in transaction mode is between: it loses notifications, and a collector's lease, "
              "which needs a session of its own",
              {fmt::format("export MAILROOM_DATABASE_URL='{}'", direct_conninfo(*subject.connection))},
              "connect to the server itself, or set pool_mode = session for this database")};
}

}  // namespace mailroom
