// The order of the checks, what each needs before it can run, and how an error becomes a finding.

#include <algorithm>
#include <array>
#include <string_view>

#include "db/loss_hint.hpp"
#include "doctor/subject.hpp"

namespace mailroom::doctor {
namespace {

/// The preconditions of a check.
struct Ground {
  std::string_view setting;  ///< a key of the configuration, or empty
  bool database = false;
  bool schema = false;
};

struct CheckEntry {
  const char* name;
  Ground ground;
  Check look;
};

constexpr Ground server{.setting = {}, .database = true};
constexpr Ground schema{.setting = {}, .database = true, .schema = true};

constexpr std::array<CheckEntry, 26> checks{{
    {"configuration", {}, check_configuration},
    {"key", {.setting = "signing.key_file"}, check_key},
    {"previous keys", {.setting = "signing.previous_key_files"}, check_previous_keys},
    {"database", {.setting = "database.url"}, check_database},
    {"pooler", server, check_pooler},
    {"clock", server, check_clock},
    {"settings", server, check_server_settings},
    {"schema", server, check_schema},
    {"drift", schema, check_drift},
    {"home", schema, check_home},
    {"privileges", server, check_privileges},
    {"triggers", schema, check_triggers},
    {"search paths", schema, check_search_paths},
    {"channel", {.setting = "collect.channel", .database = true, .schema = true}, check_channel},
    {"sequence", schema, check_sequence},
    {"insert", schema, check_insert},
    {"queue", {.setting = "collect.queue", .database = true, .schema = true}, check_queue},
    {"collectors", {.setting = "collect.queue", .database = true, .schema = true}, check_collectors},
    {"batches", schema, check_batches},
    {"templates", {}, check_templates},
    {"relay", {}, check_relays},
    {"bounces", {}, check_bounces},
    {"signature", {}, check_signature},
    {"submission", {}, check_submission},
    {"sink", {}, check_sink},
    {"traces", {}, check_traces},
}};

/// Why a check cannot run; empty if it can.
std::string lacking(const Subject& subject, const Ground& ground) {
  const bool is_known = ground.setting.empty() || knows(subject, ground.setting) ||
                        (ground.setting == "signing.key_file" && knows(subject, "signing.key"));
  if (!is_known) return "the configuration cannot be read";
  if (ground.setting == "database.url" && !subject.url_valid) return "the connection string cannot be parsed";
  if (ground.database && !subject.connection) return "there is no connection to the database";
  if (ground.database && !subject.server_usable) return "the server is too old";
  if (ground.database && subject.pooler == db::PoolerKind::statement)
    return "the connection goes through a pooler in statement mode";
  if (ground.schema && !subject.schema_usable) return "the schema is not current";
  return {};
}

Finding failure_of(const Error& error) {
  return failure(error.what(), {}, error.hint());
}

/// The findings of `work`; an Error becomes a finding. Besides main, only this function and of_profile()
/// catch errors, because a failed check must not prevent the others.
template <typename Work>
Findings findings_of(Subject& subject, Work&& work) {
  try {
    return work();
  } catch (const db::ConnectionLost& error) {
    subject.connection.reset();
    auto lost = failure(error.what(), {}, db::unreachable_hint(error, subject.settings->database.url));
    lost.check = "database";
    return {lost};
  } catch (const db::DatabaseError& error) {
    // The check `privileges` reports what to grant.
    const bool forbidden = error.sqlstate() == "42501";
    return {forbidden ? not_checked(error.what()) : failure_of(db::explained_damage(error))};
  } catch (const Error& error) {
    return {failure_of(error)};
  }
}

Findings run_check(Subject& subject, const CheckEntry& entry) {
  auto reason = lacking(subject, entry.ground);
  if (!reason.empty()) return {not_checked(std::move(reason))};
  auto findings = findings_of(subject, [&] { return entry.look(subject); });
  const bool lost = entry.ground.database && !subject.connection;
  if (lost) findings.push_back(not_checked("the connection was lost"));
  return findings;
}

/// Loads the settings without an unreadable file, since flags and environment override it anyway. Errors in
/// these are reported once the file is fixed.
void read_without_file(Subject& subject) {
  findings_of(subject, [&] {
    subject.settings = subject.sources.load(config::FileUse::ignored);
    return Findings{};
  });
}

}  // namespace

bool knows(const Subject& subject, std::string_view key) {
  if (!subject.settings) return false;
  return subject.settings_complete ||
         config::setting_of(*subject.settings, key).origin.kind >= config::OriginKind::environment;
}

Findings examine(const DoctorSources& sources) {
  Subject subject;
  subject.sources = sources;
  Findings all;
  for (const auto& entry : checks) {
    for (auto& finding : run_check(subject, entry)) {
      if (finding.check.empty()) finding.check = entry.name;
      all.push_back(std::move(finding));
    }
    if (!subject.settings) read_without_file(subject);
  }
  return all;
}

}  // namespace mailroom::doctor
