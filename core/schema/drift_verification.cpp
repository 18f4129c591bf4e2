#include "schema/drift_verification.hpp"

#include <fmt/format.h>

#include "schema/bookkeeping.hpp"

namespace mailroom {
namespace {

bool has_history(Connection& connection) {
  return connection
      .run("SELECT to_regclass(format('%I.mailroom_schema_history', current_schema())) IS NOT NULL")[0][0]
      .as<bool>();
}

/// Compares the migration's text with the checksum of the last row that records it as applied.
void compare_checksum(Connection& connection, const Migration& migration, Verification& verification) {
  const auto rows = connection.run(
      "SELECT checksum = encode(sha256(convert_to(replace($2, chr(13), ''), 'UTF8')), 'hex'), direction, "
      "floor(extract(epoch FROM at) * 1000000)::bigint, actor, mailroom_version FROM mailroom_schema_history "
      "WHERE version = $1 AND direction IN ('up', 'adopt', 'baseline') ORDER BY id DESC LIMIT 1",
      migration.version, migration.up);
  if (rows.empty()) return;
  ++verification.checksums;
  if (rows[0][0].as<bool>()) return;
  verification.edited.push_back({.version = migration.version,
                                 .name = migration.name,
                                 .direction = rows[0][1].c_str(),
                                 .at = rows[0][2].as<std::int64_t>(),
                                 .actor = rows[0][3].c_str(),
                                 .made_by = rows[0][4].c_str()});
}

void compare_checksums(Connection& connection, Verification& verification) {
  if (!has_history(connection)) return;
  for (const auto& migration : embedded_migrations()) {
    if (migration.version <= verification.version) compare_checksum(connection, migration, verification);
  }
}

SchemaState comparable_state(Connection& connection) {
  const auto state = read_schema_state(connection);
  const auto newest = embedded_migrations().back().version;
  require_own_tables(connection, state);
  if (!state.version) {
    throw Error(ExitCode::schema, "the database has no mailroom schema yet", "run: mailroom migrate");
  }
  if (*state.version > newest) {
    throw Error(ExitCode::schema,
                fmt::format("the schema has version {}, and this mailroom knows versions up to {}",
                            *state.version, newest),
                "verify it with the newer mailroom that made it");
  }
  return state;
}

}  // namespace

Verification verify_schema(Connection& connection) {
  const auto state = comparable_state(connection);
  const auto look = inspect_schema(connection);
  Verification verification;
  verification.schema = look.schema;
  verification.dirty = state.dirty;
  verification.is_recorded = !state.unrecorded;
  if (state.unrecorded) {
    auto recognition = recognise(look);
    verification.version = recognition.version;
    verification.verdict = recognition.verdict;
    verification.drift = std::move(recognition.drift);
    return verification;
  }
  // Version -1: golang-migrate failed in the first migration, and nothing was applied.
  verification.version = std::max(*state.version, 0L);
  verification.drift = compare(look.built, static_cast<std::size_t>(verification.version), look.found);
  compare_checksums(connection, verification);
  return verification;
}

Verification verify_before_claim(Connection& connection, long version) {
  const auto look = inspect_schema(connection);
  const auto recognition = recognise(look);
  const bool is_hopeless = recognition.verdict == Recognition::Verdict::earlier_form ||
                           recognition.verdict == Recognition::Verdict::not_ours;
  if (is_hopeless) require_recognised(recognition, look.schema);
  Verification verification;
  verification.schema = look.schema;
  verification.version = version;
  verification.drift = compare(look.built, static_cast<std::size_t>(version), look.found);
  compare_checksums(connection, verification);
  return verification;
}

}  // namespace mailroom
