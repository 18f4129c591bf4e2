#include "schema/recognition.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace mailroom {
namespace {

using Verdict = Recognition::Verdict;

Recognition nearest_version(const SchemaInspection& look) {
  std::optional<Recognition> nearest;
  for (auto version = look.built.size(); version-- > 0;) {
    auto drift = compare(look.built, version, look.found);
    if (nearest && drift.differences.size() >= nearest->drift.differences.size()) continue;
    nearest = Recognition{Verdict::fits, static_cast<long>(version), std::move(drift)};
  }
  return nearest.value();
}

Verdict judge(const SchemaInspection& look, const Recognition& nearest) {
  const auto secret = look.found.find({ObjectKind::column, "tokens.secret"});
  if (secret == look.found.end()) return Verdict::not_ours;
  if (secret->second.definition.rfind("bytea", 0) != 0) return Verdict::earlier_form;
  return nearest.drift.differences.empty() ? Verdict::fits : Verdict::differs;
}

/// `column tokens.secret, trigger tokens.after_token_inserted and 3 more`
std::string some_of(const std::vector<Difference>& differences) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, differences.size()); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", object_kind_word(differences[i].kind),
                        differences[i].name);
  }
  if (differences.size() > shown) text += fmt::format(" and {} more", differences.size() - shown);
  return text;
}

[[noreturn]] void refuse_difference(const Recognition& recognition) {
  const auto count = recognition.drift.differences.size();
  throw Error(
      ExitCode::schema,
      fmt::format("mailroom's tables have no recorded version, and match none: {} from version {}, the "
                  "nearest ({})",
                  count == 1 ? "one thing differs" : fmt::format("{} things differ", count),
                  recognition.version, some_of(recognition.drift.differences)),
      fmt::format("mailroom migrate verify shows the differences; fix them, or record the version anyway: "
                  "mailroom migrate baseline {}",
                  recognition.version));
}

}  // namespace

Recognition recognise(const SchemaInspection& look) {
  auto recognition = nearest_version(look);
  recognition.verdict = judge(look, recognition);
  return recognition;
}

void require_recognised(const Recognition& recognition, const std::string& schema) {
  switch (recognition.verdict) {
    case Verdict::fits:
      return;
    case Verdict::differs:
      refuse_difference(recognition);
    case Verdict::earlier_form:
      throw Error(ExitCode::schema,
                  "the tables are of an earlier form of the schema: tokens.secret is hexadecimal text, and "
                  "mailroom needs bytea",
                  "nothing has been changed; mailroom migrate verify shows what differs and the statements "
                  "that convert it");
    case Verdict::not_ours:
      throw Error(
          ExitCode::schema,
          fmt::format("the schema {} has tables with mailroom's names that mailroom did not create", schema),
          advice_of_own_schema());
  }
}

bool has_tables_of_our_names(Connection& connection) {
  return connection
      .run(
          "SELECT bool_or(to_regclass(format('%I.%I', current_schema(), name)) IS NOT NULL) "
          "FROM unnest('{accounts,tokens,jobs}'::text[]) name")[0][0]
      .as<bool>();
}

void require_own_tables(Connection& connection, const SchemaState& state) {
  const bool says_applied = state.version && !state.unrecorded && !state.dirty;
  if (!says_applied || has_tables_of_our_names(connection)) return;
  throw Error(
      ExitCode::schema,
      fmt::format("schema_migrations says version {}, but none of mailroom's tables exists", *state.version),
      "another application probably keeps its own migrations there; " + advice_of_own_schema());
}

SchemaState recognised(Connection& connection, SchemaState state) {
  require_own_tables(connection, state);
  if (!state.unrecorded) return state;
  const auto look = inspect_schema(connection);
  const auto recognition = recognise(look);
  require_recognised(recognition, look.schema);
  state.version = recognition.version;
  return state;
}

std::string advice_of_own_schema() {
  return "give mailroom its own schema: CREATE SCHEMA mailroom, and "
         "?options=-csearch_path%3Dmailroom,public in the connection string";
}

const char* earlier_form_conversion() {
  return "BEGIN;\n"
         "ALTER TABLE tokens ALTER COLUMN secret DROP DEFAULT,\n"
         "    ALTER COLUMN secret TYPE bytea USING decode(secret, 'hex'),\n"
         "    ALTER COLUMN secret SET DEFAULT gen_random_bytes(32);\n"
         "ALTER TYPE job_type RENAME VALUE 'user_action_queue' TO 'mailroom';\n"
         "CREATE OR REPLACE FUNCTION trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql\n"
         "    AS 'BEGIN NOTIFY token_insert; RETURN NULL; END;';\n"
         "COMMIT;\n";
}

}  // namespace mailroom
