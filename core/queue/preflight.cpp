#include "queue/preflight.hpp"

namespace mailroom {
namespace {

void check_trigger(Connection& connection) {
  const auto rows = connection.run(
      "SELECT tgenabled IN ('O', 'A') FROM pg_trigger "
      "WHERE tgrelid = 'tokens'::regclass AND tgname = 'before_token_insert'");
  if (rows.empty()) {
    throw Error(
        ExitCode::schema, "the trigger before_token_insert on tokens is missing",
        "without it a token that is committed late can be passed by; migration 3_token_ids creates it");
  }
  if (!rows[0][0].as<bool>()) {
    throw Error(ExitCode::schema, "the trigger before_token_insert on tokens is disabled",
                "ALTER TABLE tokens ENABLE TRIGGER before_token_insert");
  }
}

void check_sequence(Connection& connection) {
  const auto row = connection.run(
      "SELECT seqcache = 1 AND seqincrement = 1 AND NOT seqcycle FROM pg_sequence "
      "WHERE seqrelid = 'tokens_id_seq'::regclass")[0];
  if (!row[0].as<bool>()) {
    throw Error(ExitCode::schema, "the sequence tokens_id_seq does not give out ids one by one, in order",
                "ALTER SEQUENCE tokens_id_seq CACHE 1 INCREMENT 1 NO CYCLE");
  }
}

}  // namespace

void check_queue_foundations(Connection& connection) {
  check_trigger(connection);
  check_sequence(connection);
}

}  // namespace mailroom
