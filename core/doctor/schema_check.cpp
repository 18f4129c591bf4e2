// Is there a schema, in the right place and of a version that this mailroom can use, do its triggers fire,
// and do applications find it?

#include <fmt/format.h>

#include "db/search_path.hpp"
#include "doctor/finding.hpp"
#include "doctor/subject.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/configured_schema.hpp"
#include "schema/schema_objects.hpp"
#include "schema/schema_places.hpp"
#include "status/shadows.hpp"
#include "status/trigger_status.hpp"

namespace mailroom::doctor {
namespace {

/// False also for the tables of an unreleased mailroom.
bool has_queue_tables(db::Connection& connection) {
  return connection
      .run(R"(
SELECT EXISTS (
  SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
  WHERE c.relname = 'mailroom_batches' AND n.nspname = current_schema() AND a.attname = 'queue'))")
      .value<bool>();
}

/// Reports mailroom's tables in a schema that is not on the search_path, or that the role may not use.
Findings look_elsewhere(db::Connection& connection) {
  if (schema::is_place(connection)) return {};
  const auto places = schema::other_places(connection);
  if (places.empty()) return {};
  const auto error = schema::elsewhere(connection, places);
  if (!places.front().is_usable)
    return {failure(error.what(), {{status::FixKind::grant, places.front().grant}})};
  const auto path = connection.run(
      "SELECT format('ALTER ROLE %I IN DATABASE %I SET search_path = %I, public;', session_user, "
      "current_database(), $1::text)",
      places.front().name);
  return {failure(error.what(), {{status::FixKind::find_schema, path.text()}}, error.hint())};
}

Finding judge_newer(long version, long newest, long minimum_client) {
  if (minimum_client > newest) {
    return failure(
        fmt::format("version {} needs a mailroom that knows version {}, but this one knows only {}", version,
                    minimum_client, newest),
        {}, "upgrade mailroom on this machine");
  }
  return warning(fmt::format("version {}, newer than the {} that this mailroom knows", version, newest), {},
                 "the schema still supports this mailroom; upgrade it too");
}

Finding judge_state(const schema::SchemaState& state, long newest, long minimum_client) {
  if (!state.version) return failure("the database has no mailroom schema yet", {migrate_fix()});
  if (state.dirty) {
    const auto before = *state.version > 0 ? std::to_string(*state.version - 1) : std::string("none");
    return failure(
        fmt::format("marked dirty at version {}: another tool failed while migrating", *state.version),
        {{status::FixKind::force_version, "mailroom migrate force " + before}},
        schema::explain_dirty(schema::embedded_migrations(), state));
  }
  if (state.unrecorded) {
    return failure("the tables have no record of their version", {migrate_fix()});
  }
  if (*state.version < newest) {
    return failure(fmt::format("version {}, but version {} is needed", *state.version, newest),
                   {migrate_fix()});
  }
  if (*state.version > newest) return judge_newer(*state.version, newest, minimum_client);
  if (state.functions == schema::FunctionState::absent)
    return failure("the schema has none of mailroom's functions", {migrate_fix()});
  if (state.functions == schema::FunctionState::older)
    return failure("the functions of the schema are those of an older mailroom", {migrate_fix()});
  if (state.functions == schema::FunctionState::elsewhere)
    return failure(std::string(schema::renamed_text), {migrate_fix()});
  if (state.functions == schema::FunctionState::newer) {
    return warning(fmt::format("version {}, the newest, with the functions of a newer mailroom", newest), {},
                   "they still support this mailroom; upgrade it too");
  }
  return fine(fmt::format("version {}, the newest", newest));
}

}  // namespace

Findings check_schema(Subject& subject) {
  schema::require_configured_schema(*subject.connection);
  // Set before reading the version, so that later checks run even if this role may not read it.
  subject.schema_usable = has_queue_tables(*subject.connection);
  subject.has_tables = subject.schema_usable;
  if (!subject.schema_usable) {
    auto elsewhere = look_elsewhere(*subject.connection);
    if (!elsewhere.empty()) return elsewhere;
  }
  const auto newest = static_cast<long>(schema::embedded_migrations().back().version);
  const auto state = schema::read_schema_state(*subject.connection);
  const bool is_newer = state.version.value_or(0) > newest;
  auto finding = judge_state(state, newest, is_newer ? schema::read_minimum_client(*subject.connection) : 0);
  subject.schema_usable = finding.verdict != CheckVerdict::failure;
  subject.schema_newer = is_newer;
  return {std::move(finding)};
}

Findings check_triggers(Subject& subject) {
  auto& connection = *subject.connection;
  const auto status =
      connection.transact([](pqxx::work& transaction) { return status::read_trigger_status(transaction); });
  Findings findings;
  for (const auto& found : health::judge_triggers(status, db::quoted_schema(connection)))
    findings.push_back(finding_of(found));
  return or_fine(std::move(findings), fmt::format("all {} are enabled", schema::expected_triggers().size()));
}

Findings check_search_paths(Subject& subject) {
  auto& connection = *subject.connection;
  const auto shadows =
      connection.transact([](pqxx::work& transaction) { return status::find_shadows(transaction); });
  Findings findings;
  for (const auto& found : health::judge_shadows(shadows, db::quoted_schema(connection)))
    findings.push_back(finding_of(found));
  return or_fine(std::move(findings), "no table and no function of mailroom's names comes before its own");
}

}  // namespace mailroom::doctor
