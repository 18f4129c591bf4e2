// The configuration of a run: a typed value for every key, and where each comes from.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "config/listen_address.hpp"
#include "config/rate.hpp"
#include "config/relay_path.hpp"

namespace mailroom::config {

/// The names of the values of an enumeration, and the values.
template <typename T>
using Choices = std::vector<std::pair<std::string, T>>;

template <typename T>
std::vector<std::string> names_of(const Choices<T>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices)
    names.push_back(name);
  return names;
}

/// A value, or two between which mailroom chooses.
template <typename T>
struct ValueRange {
  T min{};
  T max{};

  bool is_fixed() const { return min == max; }
  bool operator==(const ValueRange&) const = default;
};

enum class CollectFormat { csv, jsonl };
enum class NotifyWhen { when_listening, always };
/// What to do with a token that the receiver may have accepted without an answer.
enum class WhenUnknown {
  resend,  ///< deliver it again; a mail only once more, then it is a dead letter
  hold,    ///< it is a dead letter
};
/// Where a program that batches are handed over to answers.
enum class AckOn { descriptor_3, stdout };

/// The source of a value; a later kind overrides an earlier one.
enum class OriginKind { default_value, file, environment, flag };

struct Origin {
  OriginKind kind = OriginKind::default_value;
  /// `mailroom.yaml:12:3`, `MAILROOM_BATCH_LIMIT`, `--batch-limit`; `default` for a default.
  std::string where;
};

/// The value of one key as it was written.
struct SettingValue {
  std::string key;                 ///< `collect.batch_limit`
  std::string text;                ///< a list joined by commas
  std::vector<std::string> items;  ///< of a list
  Origin origin;
  std::filesystem::path directory{};  ///< of its file, for relative paths; empty for other origins
  bool is_secret = false;             ///< never shown in a message; of database.url only the password
  std::string profile{};              ///< which says so; empty for none
  std::string role{};                 ///< of submission.roles, which says so; empty for none

  /// As the file has it: `send.from`, `profiles.acme.from`, `submission.roles.shop.senders`.
  std::string name() const;
};

// The sections of the configuration file. What is not parsed here is parsed where it is used; an empty text
// says that a key is not set.

struct DatabaseSettings {
  std::string url;
  std::string schema;  ///< or empty: the first schema of the search_path
  std::string password_file;

  bool operator==(const DatabaseSettings&) const = default;
};

struct SigningSettings {
  std::string key;                         ///< 64 hexadecimal digits given inline
  std::string key_file;                    ///< only one of the two is set
  std::vector<std::string> previous_keys;  ///< each 64 hexadecimal digits or a path
  bool allow_readable_key = false;

  bool operator==(const SigningSettings&) const = default;
};

struct CollectSettings {
  std::string channel;
  std::vector<std::string> queues;
  ValueRange<int> batch_limit;
  int lines_per_claim = 0;
  ValueRange<Milliseconds> batch_timeout;
  Milliseconds line_cost{};
  Milliseconds poll_interval{};
  Milliseconds healthcheck_interval{};
  CollectFormat format = CollectFormat::csv;
  NotifyWhen notify = NotifyWhen::when_listening;

  bool operator==(const CollectSettings&) const = default;
};

struct QueueSettings {
  Milliseconds max_wait{};  ///< for a queue of lower priority

  bool operator==(const QueueSettings&) const = default;
};

struct SendSettings {
  RelayPath path;
  std::string from;                  ///< `Name <local@domain>`, not parsed
  std::string reply_to;              ///< the same
  std::string link;                  ///< not parsed
  std::string templates;             ///< a directory
  std::vector<std::string> headers;  ///< each `Name: value`, not parsed
  int max_size = 0;                  ///< of a mail, in bytes
  int batch_limit = 0;
  std::optional<Rate> per_recipient;
  std::string bounce_address;      ///< with {id}, not parsed; empty: that of the sender
  std::string unsubscribe_link;    ///< with {token}, not parsed; empty: none
  std::string unsubscribe_mailto;  ///< with {id}, not parsed; empty: none
  std::string redirect_to;         ///< an address, not parsed
  std::vector<std::string> allow;  ///< addresses, and domains after an @; not parsed
  WhenUnknown when_unknown = WhenUnknown::resend;
  bool supersede = true;
  bool suppress_refused = false;  ///< addresses that a relay refuses for good
  bool evidence = true;           ///< the hash of each mail and its templates are recorded

  bool operator==(const SendSettings&) const = default;
};

struct BounceSettings {
  std::vector<std::string> resend_secret_files;  ///< of the webhook; the first is the newest
  std::vector<std::string> sns_topics;           ///< ARNs, not parsed
  /// Secrets or keys of the others, by the provider's name.
  std::map<std::string, std::vector<std::string>, std::less<>> secret_files;
  std::optional<Rate> suppress_after;  ///< soft bounces of an address; nullopt: any number
  std::string password_file;           ///< of the user of a mailbox
  std::string token_file;              ///< of OAuth 2, instead
  std::string token_command;           ///< for the shell
  std::string ca_file;

  bool operator==(const BounceSettings&) const = default;
};

/// A brand or tenant: how its mails differ.
struct Profile {
  std::string name;
  SendSettings send;                 ///< of its mails
  std::vector<SettingValue> values;  ///< that differ, with the keys of `send`
};

struct SubmissionSettings {
  std::vector<std::string>
      listen;        ///< addresses, each with `=ROLE` behind it if who connects needs no login; not parsed
  std::string http;  ///< an address; empty: none; not parsed
  std::string timezone;                       ///< of times without one
  std::vector<std::string> attachment_hosts;  ///< not parsed
  std::string certificate;                    ///< PEM; empty: no TLS
  std::string key;
  int connections = 0;
  int connections_per_address = 0;
  std::optional<int> max_size;  ///< of a mail, in bytes; nullopt: that of `send`
  int max_recipients = 0;
  int memory = 0;  ///< of mails that are being taken, in bytes
  Milliseconds timeout{};
  Milliseconds patience{};
  Milliseconds login_cache{};
  std::string local_to;              ///< an address, not parsed
  std::string local_from;            ///< the same
  std::string spool;                 ///< directory; empty: none
  std::string aliases;               ///< file
  std::vector<std::string> senders;  ///< addresses, and domains after an @; not parsed; empty: any
  bool header_options = true;
  bool keeps_return_path = false;  ///< of a role

  bool operator==(const SubmissionSettings&) const = default;
};

/// A role that submits: how its mails are taken otherwise than those of others.
struct SubmissionRole {
  std::string name;
  SubmissionSettings submission{};     ///< of its mails
  std::vector<SettingValue> values{};  ///< that differ, with the keys of `submission`
};

struct SinkSettings {
  std::string to;          ///< a URL, not parsed
  std::string exec;        ///< a program and its arguments, not parsed
  int in_flight = 0;       ///< lines
  Milliseconds timeout{};  ///< for an answer
  AckOn ack_on = AckOn::descriptor_3;
  WhenUnknown when_unknown = WhenUnknown::resend;
  std::string ca_file;
  std::vector<std::string> signing_secret_files;  ///< the first is the newest
  std::string password_file;                      ///< of the user in `to`
  std::string credentials_file;                   ///< of a NATS user
  std::string stream;
  std::string subject;   ///< with {queue} and {action}, as is routing_key
  std::string monitor;   ///< a URL, not parsed
  std::string exchange;  ///< empty: the default exchange
  std::string routing_key;
  std::string event_source;  ///< of CloudEvents headers; empty: none

  bool operator==(const SinkSettings&) const = default;
};

struct MetricsSettings {
  std::optional<ListenAddress> listen;  ///< nullopt: nowhere

  bool operator==(const MetricsSettings&) const = default;
};

struct DeskSettings {
  std::optional<ListenAddress> listen;
  std::string url;              ///< under which a proxy serves it, not parsed; empty: none does
  Milliseconds idle_timeout{};  ///< of a session that asks for nothing
  Milliseconds session_timeout{};

  bool operator==(const DeskSettings&) const = default;
};

struct TraceSettings {
  std::string endpoint;  ///< a URL, not parsed; empty: no traces
  double sample = 1;     ///< of the traces that begin here, how many are recorded
  std::string headers_file{};
  std::string environment{};

  bool operator==(const TraceSettings&) const = default;
};

struct AuditSettings {
  Milliseconds retention{};

  bool operator==(const AuditSettings&) const = default;
};

struct MessagesSettings {
  Milliseconds retention{};  ///< of their content

  bool operator==(const MessagesSettings&) const = default;
};

struct LogSettings {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;

  bool operator==(const LogSettings&) const = default;
};

/// The configuration as it is for one profile.
struct ProfiledSettings {
  DatabaseSettings database;
  SigningSettings signing;
  CollectSettings collect;
  QueueSettings queue;
  SendSettings send;
  BounceSettings bounce;
  SubmissionSettings submission;
  SinkSettings sink;
  MetricsSettings metrics;
  DeskSettings desk;
  TraceSettings trace;
  AuditSettings audit;
  MessagesSettings messages;
  LogSettings log;

  std::vector<SettingValue> values;  ///< every key, in the order of the documentation
  std::string file;                  ///< the configuration file that was read; empty for none
};

/// The effective configuration, parsed and checked.
struct Settings : ProfiledSettings {
  std::vector<Profile> profiles;  ///< in the order of the file; without `default`, which is `send`
  std::vector<SubmissionRole> submission_roles{};  ///< in the order of the file
};

/// The entry of `key`, which must be a configuration key.
const SettingValue& setting_of(const Settings& settings, std::string_view key);

/// The profile of mails that name none.
constexpr std::string_view default_profile = "default";

/// `settings` without its profiles, whose section `send` is as the profile has it. Empty and `default` change
/// nothing else. Throws Error(configuration) if there is no such profile.
Settings with_profile(const Settings& settings, std::string_view name);

/// A profile of the file with its section `send`, which load_settings() keeps: flags hold for every profile.
Profile finished_profile(Profile profile, const Settings& settings);

/// A role of the file with its section `submission`; flags hold for every role.
SubmissionRole finished_role(SubmissionRole role, const Settings& settings);

/// Parses what Settings::values say into the sections. Throws Error as load_settings().
void store_values(Settings& settings);

/// Throws Error(configuration) that names every one of `keys` without a value, with an example of the first.
void require_keys(const std::vector<std::string_view>& keys, const Settings& settings);

/// The error of require_keys() for keys of these names; `first` is the first of them.
[[noreturn]] void refuse_missing(const std::vector<std::string>& names, std::string_view first);

/// `settings` with the batch limit and timeout that the database defines for a queue, where the configuration
/// does not say otherwise. An empty text defines nothing. Throws Error(configuration) for an invalid value.
Settings with_queue_defaults(const Settings& settings, const std::string& queue,
                             const std::string& batch_limit, const std::string& batch_timeout);

/// The queue of collect.queue. Throws Error(usage) if it names several: the command needs one.
const std::string& only_queue(const Settings& settings);

using EnvironmentVariables = std::map<std::string, std::string>;

/// NO_COLOR and the MAILROOM_ variables of this process.
EnvironmentVariables process_environment();

/// Configuration from the command line.
struct Overrides {
  std::optional<std::string> file;  ///< --config

  struct Flag {
    std::string key;   ///< `collect.batch_limit`
    std::string text;  ///< as typed
    std::string name;  ///< `--batch-limit`
  };
  std::vector<Flag> flags;
};

/// Whether the configuration file is read.
enum class FileUse { read, ignored };

/// Precedence: flag > environment > file > default. The file is --config, else MAILROOM_CONFIG, else
/// ./mailroom.yaml, else /etc/mailroom/mailroom.yaml; the last two may be absent. An empty environment
/// variable counts as unset. Throws Error(configuration) for a file that cannot be read or parsed, an unknown
/// key (with line, column and the nearest known key) and an invalid value (with its origin); Error(usage) for
/// a flag.
Settings load_settings(const Overrides& overrides, const EnvironmentVariables& environment,
                       FileUse use = FileUse::read);

}  // namespace mailroom::config
