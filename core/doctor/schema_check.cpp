#include <fmt/format.h>

#include "doctor/subject.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {
namespace {

bool has_queue_tables(Connection& connection) {
  return connection
      .run(R"(
SELECT EXISTS (
  SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relname = 'mailroom_batches' AND n.nspname = current_schema()))")[0][0]
      .as<bool>();
}

/// Reports mailroom's tables in a schema that is not on the search_path, or that the role may not use.
Findings look_elsewhere(Connection& connection) {
  const auto rows = connection.run(R"(
SELECT n.nspname, has_schema_privilege(n.oid, 'USAGE'), current_setting('search_path'),
  CASE WHEN has_schema_privilege(n.oid, 'USAGE')
       THEN format('ALTER ROLE %I IN DATABASE %I SET search_path = %I, public;', session_user,
                   current_database(), n.nspname)
       ELSE format('GRANT USAGE ON SCHEMA %I TO %I;', n.nspname, current_user) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'mailroom_batches' AND c.relkind = 'r'
LIMIT 1)");
  if (rows.empty()) return {};
  const auto* name = rows[0][0].c_str();
  const auto reason = rows[0][1].as<bool>()
                          ? fmt::format("the tables are in the schema {}, but the search_path is {}", name,
                                        rows[0][2].c_str())
                          : fmt::format("the tables are in the schema {}, which the role may not use", name);
  return {failure(reason, {rows[0][3].c_str()})};
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

Finding judge_state(const SchemaState& state, long newest, long minimum_client) {
  if (!state.version) return failure("the database has no mailroom schema yet", {"mailroom migrate"});
  if (state.dirty) {
    const auto before = *state.version > 0 ? std::to_string(*state.version - 1) : std::string("none");
    return failure(
        fmt::format("marked dirty at version {}: another tool failed while migrating", *state.version),
        {"mailroom migrate force " + before}, explain_dirty(embedded_migrations(), state));
  }
  if (state.unrecorded) {
    return failure("the tables have no record of their version", {"mailroom migrate"});
  }
  if (*state.version < newest) {
    return failure(fmt::format("version {}, but version {} is needed", *state.version, newest),
                   {"mailroom migrate"});
  }
  if (*state.version > newest) return judge_newer(*state.version, newest, minimum_client);
  return fine(fmt::format("version {}, the newest", newest));
}

}  // namespace

Findings check_schema(Subject& subject) {
  require_configured_schema(*subject.connection);
  // Set before reading the version, so that later checks run even if this role may not read it.
  subject.schema_usable = has_queue_tables(*subject.connection);
  subject.has_tables = subject.schema_usable;
  if (!subject.schema_usable) {
    auto elsewhere = look_elsewhere(*subject.connection);
    if (!elsewhere.empty()) return elsewhere;
  }
  const auto newest = static_cast<long>(embedded_migrations().back().version);
  const auto state = read_schema_state(*subject.connection);
  const bool is_newer = state.version.value_or(0) > newest;
  auto finding = judge_state(state, newest, is_newer ? read_minimum_client(*subject.connection) : 0);
  subject.schema_usable = finding.verdict != CheckVerdict::failure;
  subject.schema_newer = is_newer;
  return {std::move(finding)};
}

}  // namespace mailroom
