#include "bench/loading.hpp"

namespace mailroom::bench {

void without_triggers(db::Connection& connection) {
  connection.run("SET session_replication_role = replica");
}

void with_indexes_dropped(db::Connection& connection, const std::function<void()>& load) {
  connection.run("ALTER TABLE tokens DROP CONSTRAINT tokens_pkey, DROP CONSTRAINT tokens_secret_key");
  const auto indexes = connection.run(
      "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'tokens' AND schemaname = "
      "current_schema()");
  for (const auto& index : indexes)
    connection.run("DROP INDEX " + index[0].as<std::string>());
  load();
  connection.run("ALTER TABLE tokens ADD CONSTRAINT tokens_pkey PRIMARY KEY (id)");
  connection.run("ALTER TABLE tokens ADD CONSTRAINT tokens_secret_key UNIQUE (secret)");
  for (const auto& index : indexes)
    connection.run(index[1].as<std::string>());
}

void finish_loading(db::Connection& connection) {
  connection.run("SELECT setval('tokens_id_seq', greatest((SELECT max(id) FROM tokens), 1))");
  connection.run("SELECT setval('accounts_id_seq', greatest((SELECT max(id) FROM accounts), 1))");
  connection.run("VACUUM (ANALYZE)");
  connection.run("CHECKPOINT");
}

}  // namespace mailroom::bench
