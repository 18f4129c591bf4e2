// What all checks share: their inputs, what earlier ones have found, and their declarations.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.hpp"
#include "db/connection.hpp"
#include "db/pooler.hpp"
#include "doctor/finding.hpp"

namespace mailroom::doctor {

/// Runs `sql`, in which $1 is the current schema and $2… are `arguments`, with only pg_catalog on the
/// search_path: the server then writes every other name with its schema, as SQL that is printed needs it.
template <typename... Arguments>
db::Rows qualified_rows(db::Connection& connection, const std::string& sql, const Arguments&... arguments) {
  return connection.transact([&](pqxx::work& transaction) {
    const auto schema = db::Connection::execute(transaction, "SELECT current_schema()").text();
    db::Connection::execute(transaction, "SET LOCAL search_path = pg_catalog");
    return db::Connection::execute(transaction, sql, schema, arguments...);
  });
}

/// The inputs of the doctor, replaceable in tests.
struct DoctorSources {
  /// Throws Error(configuration).
  std::function<config::Settings(config::FileUse)> load;
  std::function<std::chrono::system_clock::time_point()> now;
  std::string application_role{};  ///< as which an account is inserted; empty: as the session's
  std::string received_mail{};     ///< the file of a mail whose signature is looked at; or empty
  /// Why the collector of traces takes no spans, or empty; null: not tried.
  std::function<std::string(const config::Settings&)> try_traces{};
};

/// The state that the checks share: each check may use the results of earlier ones.
struct Subject {
  DoctorSources sources;
  std::optional<config::Settings> settings;        ///< without the file if it could not be read
  bool settings_complete = false;                  ///< the file, if any, was read
  bool url_valid = true;                           ///< the connection string can be parsed
  std::string fingerprint;                         ///< of the current key; empty until it is loaded
  std::vector<std::string> previous_fingerprints;  ///< of the previous keys that could be loaded
  std::unique_ptr<db::Connection> connection;      ///< null if not connected or lost
  bool server_usable = true;                       ///< its version is supported
  bool in_recovery = false;
  db::PoolerKind pooler = db::PoolerKind::none;
  bool schema_usable = false;  ///< the version, if readable, is at least the newest that this binary knows
  bool schema_newer = false;
  bool has_tables = false;      ///< of any version
  bool gives_good_ids = false;  ///< the check `sequence` found nothing
};

/// True if the value of `key` is certain: the file was read, or a flag or the environment overrides it.
bool knows(const Subject& subject, std::string_view key);

/// True if jobs has a row of this name.
bool has_queue(db::Connection& connection, const std::string& queue);

/// One check. An Error that it throws becomes a finding.
using Check = Findings (*)(Subject& subject);

Findings check_configuration(Subject& subject);
Findings check_key(Subject& subject);
Findings check_previous_keys(Subject& subject);
Findings check_database(Subject& subject);
Findings check_pooler(Subject& subject);
Findings check_clock(Subject& subject);
Findings check_server_settings(Subject& subject);
Findings check_schema(Subject& subject);
Findings check_drift(Subject& subject);
Findings check_privileges(Subject& subject);
/// What others than the owner may do with mailroom's objects beyond what the roles of docs/security.md may.
Findings judge_others(db::Connection& connection);
Findings check_triggers(Subject& subject);
/// Whether statements of applications find mailroom's tables and functions.
Findings check_search_paths(Subject& subject);
/// Inserts an account as the application does, in a transaction that it rolls back.
Findings check_insert(Subject& subject);
Findings check_channel(Subject& subject);
/// Whether mails are sent from this database, or it is a copy.
Findings check_home(Subject& subject);
Findings check_sequence(Subject& subject);
Findings check_queue(Subject& subject);
Findings check_collectors(Subject& subject);
Findings check_batches(Subject& subject);
Findings check_templates(Subject& subject);
/// Connects to each relay of send.relay, and sends no mail.
Findings check_relays(Subject& subject);
/// Whether something reads what comes back from each relay, and by which way it comes.
Findings check_bounces(Subject& subject);
/// Whether the DKIM signature of a mail that was received covers the headers for one click. Empty without
/// one.
Findings check_signature(Subject& subject);
/// Whether mails that come by SMTP are taken and stored, and logins are checked. Empty if none are to come.
Findings check_submission(Subject& subject);
/// Looks whether sink.to or sink.exec works, and hands nothing over.
Findings check_sink(Subject& subject);
/// Empty without trace.endpoint.
Findings check_traces(Subject& subject);

/// Adds indexes that were built while the operating system sorted differently.
void judge_collations(db::Connection& connection, Findings& findings);

/// The channels that a function's source notifies, as named for LISTEN: each `NOTIFY name`, `NOTIFY "Name"`
/// and `pg_notify('name', …)` outside comments. Does not find channels that are computed at run time.
std::vector<std::string> notified_channels(std::string_view source);

/// Basic facts about the server.
struct ServerFacts {
  int version = 0;  ///< 150004 for 15.4
  std::string version_text;
  bool in_recovery = false;
  std::string encoding;
  std::string target;  ///< of the connection string: see describe_target()
};

Findings judge_server(const ServerFacts& facts);

/// `ahead` is the server's clock minus this host's, with an error of up to half of `round_trip`.
Finding judge_clock(std::chrono::milliseconds ahead, std::chrono::milliseconds round_trip);

/// Runs every check, in order. A check that cannot run is reported as `not checked`. Changes nothing in the
/// database: no row, no object, no setting that outlives its session. Uses up an id of accounts and of
/// tokens.
Findings examine(const DoctorSources& sources);

}  // namespace mailroom::doctor
