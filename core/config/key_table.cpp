// Every key with its variable, default, meaning and limits, and the nearest key to a misspelt one.

#include "config/key_table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <vector>

#include "base/key_text.hpp"
#include "base/text.hpp"
#include "config/parse_value.hpp"

namespace mailroom {
namespace {

using namespace std::chrono_literals;

const Choices<CollectFormat> collect_formats{{"csv", CollectFormat::csv}, {"jsonl", CollectFormat::jsonl}};
const Choices<NotifyWhen> notify_choices{{"when_listening", NotifyWhen::when_listening},
                                         {"always", NotifyWhen::always}};
const Choices<WhenUnknown> when_unknown_choices{{"resend", WhenUnknown::resend}, {"hold", WhenUnknown::hold}};
const Choices<AckOn> ack_choices{{"3", AckOn::descriptor_3}, {"stdout", AckOn::stdout}};
const Choices<LogLevel> log_levels{{"debug", LogLevel::debug},
                                   {"info", LogLevel::info},
                                   {"warn", LogLevel::warn},
                                   {"error", LogLevel::error}};
const Choices<LogFormat> log_formats{
    {"text", LogFormat::text}, {"logfmt", LogFormat::logfmt}, {"json", LogFormat::json}};

/// The section of a type: each has a type of its own.
template <typename Section>
Section& section_in(Settings& s) {
  return std::get<Section&>(
      std::tie(s.database, s.signing, s.collect, s.queue, s.send, s.sink, s.metrics, s.audit, s.log));
}

/// Stores what `parse(value, limits…)` returns in a member of a section.
template <typename Section, typename T, typename Parse, typename... Limits>
auto into(T Section::*member, Parse parse, Limits... limits) {
  return [=](const SettingValue& value, Settings& settings) {
    section_in<Section>(settings).*member = parse(value, limits...);
  };
}

std::string as_written(const SettingValue& value) {
  return value.text;
}

std::vector<std::string> items_as_written(const SettingValue& value) {
  return value.items;
}

std::string parse_template_directory(const SettingValue& value) {
  if (value.text.empty()) refuse(value, "the path of a directory", "remove it to use the built-in templates");
  return parse_path(value);
}

const std::vector<KeyEntry> entries{
    {"database.url",
     "MAILROOM_DATABASE_URL",
     "",
     "libpq URI or key=value pairs, several hosts allowed; without it libpq's PG* variables apply",
     into(&DatabaseSettings::url, as_written),
     {},
     true},
    {"database.schema", "MAILROOM_DATABASE_SCHEMA", "",
     "schema that mailroom lives in, which migrate creates; without it the first of the role's search_path",
     into(&DatabaseSettings::schema, parse_name)},
    {"database.password_file", "MAILROOM_DATABASE_PASSWORD_FILE", "",
     "file with the password for the database, unless the URL has one",
     into(&DatabaseSettings::password_file, parse_path)},
    {"signing.key_file", "MAILROOM_SECRET_KEY_FILE", "",
     "file of the signing key: 64 hexadecimal digits (make it with: openssl rand -hex 32)",
     into(&SigningSettings::key_file, parse_path)},
    {"signing.key",
     "MAILROOM_SECRET_KEY",
     "",
     "the signing key itself, instead of key_file; in a file only if the file has mode 0600",
     into(&SigningSettings::key, parse_key),
     {},
     true},
    {"signing.previous_key_files",
     "MAILROOM_PREVIOUS_SECRET_KEYS",
     "",
     "files of earlier keys, whose tokens verify still accepts",
     into(&SigningSettings::previous_keys, parse_keys_or_paths),
     {},
     false,
     true},
    {"signing.allow_readable_key", "", "false", "accept a key file that everyone can read",
     into(&SigningSettings::allow_readable_key, parse_switch)},
    {"collect.channel", "MAILROOM_CHANNEL_NAME", "token_insert", "NOTIFY channel that wakes the collector",
     into(&CollectSettings::channel, parse_name)},
    {"collect.queue", "MAILROOM_QUEUE_NAME", "mailroom",
     "queue to collect from; several are separated by commas", into(&CollectSettings::queues, parse_names)},
    {"collect.batch_limit", "MAILROOM_BATCH_LIMIT", "10",
     "maximum number of tokens in a line, from 1 to 10000; a range such as 10..500 adapts it to the load",
     into(&CollectSettings::batch_limit, parse_count_range, 1, 10'000)},
    {"collect.lines_per_claim", "MAILROOM_LINES_PER_CLAIM", "1",
     "maximum number of lines in one claim, from 1 to 10000; a crash repeats at most that many",
     into(&CollectSettings::lines_per_claim, parse_count, 1, 10'000)},
    {"collect.batch_timeout", "MAILROOM_BATCH_TIMEOUT", "5s",
     "maximum time that a token waits for its batch to fill, up to 1d; a range such as 50ms..5s adapts it to the load",
     into(&CollectSettings::batch_timeout, parse_interval_range, 0ms, 24h)},
    {"collect.line_cost", "MAILROOM_LINE_COST", "100ms",
     "how much delay, summed over tokens, one line saved is worth, from 1ms to 1d; only with a range",
     into(&CollectSettings::line_cost, parse_interval, 1ms, 24h)},
    {"collect.healthcheck_interval", "MAILROOM_HEALTHCHECK_INTERVAL", "4m30s",
     "how long the connection may be silent before it is checked, from 1s to 1d",
     into(&CollectSettings::healthcheck_interval, parse_interval, 1s, 24h)},
    {"collect.format", "MAILROOM_COLLECT_FORMAT", "csv", "format of a line: csv or jsonl",
     into(&CollectSettings::format, parse_choice<CollectFormat>, collect_formats), names_of(collect_formats)},
    {"collect.poll_interval", "MAILROOM_POLL_INTERVAL", "1s",
     "maximum time between two polls of the queue without a notification, from 10ms to 1h",
     into(&CollectSettings::poll_interval, parse_interval, 10ms, 1h)},
    {"collect.notify", "MAILROOM_NOTIFY", "when_listening",
     "when inserts notify: when_listening (not while a collector is polling) or always",
     into(&CollectSettings::notify, parse_choice<NotifyWhen>, notify_choices), names_of(notify_choices)},
    {"queue.max_wait", "MAILROOM_QUEUE_MAX_WAIT", "30s",
     "how long a consumer of several queues may leave one without a turn for those of higher priority, from 0 to "
     "1d",
     into(&QueueSettings::max_wait, parse_interval, 0ms, 24h)},
    {"send.relay", "MAILROOM_SEND_RELAY", "",
     "SMTP relay, smtp:// or smtps://; several are separated by commas and tried in order",
     into(&SendSettings::relay, as_written)},
    {"send.password_file", "MAILROOM_SEND_PASSWORD_FILE", "",
     "file with the password for the user of the relay", into(&SendSettings::password_file, parse_path)},
    {"send.token_file", "MAILROOM_SEND_TOKEN_FILE", "",
     "file with an OAuth 2 token instead, read at each login", into(&SendSettings::token_file, parse_path)},
    {"send.token_command", "MAILROOM_SEND_TOKEN_COMMAND", "",
     "shell command that prints the token; kept until it ends",
     into(&SendSettings::token_command, as_written)},
    {"send.ca_file", "MAILROOM_SEND_CA_FILE", "",
     "file with the certificates that a relay's certificate is checked against, if not the system's",
     into(&SendSettings::ca_file, parse_path)},
    {"send.hello_name", "MAILROOM_SEND_HELLO_NAME", "", "name in EHLO, if not that of this host",
     into(&SendSettings::hello_name, as_written)},
    {"send.plaintext_relay_for_tests", "MAILROOM_SEND_PLAINTEXT_RELAY_FOR_TESTS", "false",
     "send without TLS to a relay that is not on this host; only for a test set-up: links are readable on the way",
     into(&SendSettings::plaintext_relay_for_tests, parse_switch)},
    {"send.from", "MAILROOM_SEND_FROM", "",
     "sender of the mails: an address, or a name and the address in angle brackets",
     into(&SendSettings::from, as_written)},
    {"send.reply_to", "MAILROOM_SEND_REPLY_TO", "", "where replies go, if not to the sender",
     into(&SendSettings::reply_to, as_written)},
    {"send.link", "MAILROOM_SEND_LINK", "",
     "link in a mail: a URL with {token}, and with {action} for activation or recovery",
     into(&SendSettings::link, as_written)},
    {"send.templates", "MAILROOM_SEND_TEMPLATES", "",
     "directory of mail templates, which replace the built-in ones",
     into(&SendSettings::templates, parse_template_directory)},
    {"send.headers",
     "MAILROOM_SEND_HEADERS",
     "",
     "headers to add to each mail, each as Name: value",
     into(&SendSettings::headers, items_as_written),
     {},
     false,
     true},
    {"send.connections", "MAILROOM_SEND_CONNECTIONS", "4",
     "number of mails that are delivered at the same time, from 1 to 64",
     into(&SendSettings::connections, parse_count, 1, 64)},
    {"send.batch_limit", "MAILROOM_SEND_BATCH_LIMIT", "10",
     "maximum number of tokens in progress, in two claims, from 1 to 10000; a crash mails at most that many twice",
     into(&SendSettings::batch_limit, parse_count, 1, 10'000)},
    {"send.timeout", "MAILROOM_SEND_TIMEOUT", "30s",
     "how long a relay may take for an answer, from 1s to 10m; after the end of a mail at least 2m",
     into(&SendSettings::timeout, parse_interval, 1s, 10min)},
    {"send.per_account", "MAILROOM_SEND_PER_ACCOUNT", "",
     "maximum number of mails to one account, such as 5/1h; further tokens are cancelled",
     into(&SendSettings::per_account, parse_rate_value)},
    {"send.when_unknown", "MAILROOM_SEND_WHEN_UNKNOWN", "resend",
     "what to do with a mail that the relay may have accepted without an answer: resend (once) or hold",
     into(&SendSettings::when_unknown, parse_choice<WhenUnknown>, when_unknown_choices),
     names_of(when_unknown_choices)},
    {"send.supersede", "MAILROOM_SEND_SUPERSEDE", "true",
     "of several recovery tokens of an account that wait, mail only the newest",
     into(&SendSettings::supersede, parse_switch)},
    {"send.throttled_by",
     "MAILROOM_SEND_THROTTLED_BY",
     "",
     "texts in a relay's answers that ask for a lower rate, besides those in docs/smtp.md",
     into(&SendSettings::throttled_by, items_as_written),
     {},
     false,
     true},
    {"sink.to", "MAILROOM_SINK_TO", "",
     "where collect hands its batches over instead of writing them to stdout, for example https://app.example/tokens",
     into(&SinkSettings::to, as_written)},
    {"sink.exec", "MAILROOM_SINK_EXEC", "",
     "program that collect starts and hands its batches over to, with its arguments",
     into(&SinkSettings::exec, as_written)},
    {"sink.in_flight", "MAILROOM_SINK_IN_FLIGHT", "64",
     "number of lines that are handed over at the same time, from 1 to 1024",
     into(&SinkSettings::in_flight, parse_count, 1, 1024)},
    {"sink.timeout", "MAILROOM_SINK_TIMEOUT", "30s",
     "how long the other side may take for an answer, from 100ms to 1h",
     into(&SinkSettings::timeout, parse_interval, 100ms, 1h)},
    {"sink.ack_on", "MAILROOM_SINK_ACK_ON", "3",
     "where the program of sink.exec answers: 3 (a descriptor) or stdout",
     into(&SinkSettings::ack_on, parse_choice<AckOn>, ack_choices), names_of(ack_choices)},
    {"sink.when_unknown", "MAILROOM_SINK_WHEN_UNKNOWN", "resend",
     "what to do with a token that the other side may have accepted without an answer: resend or hold",
     into(&SinkSettings::when_unknown, parse_choice<WhenUnknown>, when_unknown_choices),
     names_of(when_unknown_choices)},
    {"sink.ca_file", "MAILROOM_SINK_CA_FILE", "",
     "file with the certificates that the other side's certificate is checked against, if not the system's",
     into(&SinkSettings::ca_file, parse_path)},
    {"sink.signing_secret_files",
     "MAILROOM_SINK_SIGNING_SECRET_FILES",
     "",
     "files of the secrets that sign HTTP requests, each whsec_ and base64; several while a secret is replaced",
     into(&SinkSettings::signing_secret_files, parse_paths),
     {},
     false,
     true},
    {"sink.password_file", "MAILROOM_SINK_PASSWORD_FILE", "",
     "file with the password of the user that sink.to names", into(&SinkSettings::password_file, parse_path)},
    {"sink.credentials_file", "MAILROOM_SINK_CREDENTIALS_FILE", "",
     "file of a NATS user's credentials, with its JWT and seed",
     into(&SinkSettings::credentials_file, parse_path)},
    {"sink.stream", "MAILROOM_SINK_STREAM", "MAILROOM", "JetStream stream that must store the batches",
     into(&SinkSettings::stream, parse_name)},
    {"sink.subject", "MAILROOM_SINK_SUBJECT", "mailroom.{queue}.{action}",
     "NATS subject of a batch, with {queue} and {action}", into(&SinkSettings::subject, as_written)},
    {"sink.monitor", "MAILROOM_SINK_MONITOR", "",
     "where NATS servers serve their state, for doctor: for example http://nats1.example:8222,nats2.example:8222",
     into(&SinkSettings::monitor, as_written)},
    {"sink.exchange", "MAILROOM_SINK_EXCHANGE", "",
     "AMQP exchange that batches are published to; empty for the default exchange, which leads to queues by name",
     into(&SinkSettings::exchange, as_written)},
    {"sink.routing_key", "MAILROOM_SINK_ROUTING_KEY", "{queue}",
     "AMQP routing key of a batch, with {queue} and {action}; with the default exchange the AMQP queue",
     into(&SinkSettings::routing_key, as_written)},
    {"sink.event_source", "MAILROOM_SINK_EVENT_SOURCE", "",
     "source of the CloudEvents headers that make each batch an event, for example /mailroom; without it, no such headers",
     into(&SinkSettings::event_source, parse_uri_reference)},
    {"metrics.listen", "MAILROOM_METRICS_LISTEN", "",
     "where collect and send serve metrics for Prometheus: an address and a port, or the path of a unix socket",
     into(&MetricsSettings::listen, parse_listen_value)},
    {"audit.retention", "MAILROOM_AUDIT_RETENTION", "30d",
     "how long prune keeps expired and consumed tokens and batch records, from 1h to 36500d",
     into(&AuditSettings::retention, parse_interval, 1h, 24h * 36'500)},
    {"log.level", "MAILROOM_LOG_LEVEL", "info", "minimum level that is logged: debug, info, warn or error",
     into(&LogSettings::level, parse_choice<LogLevel>, log_levels), names_of(log_levels)},
    {"log.format", "MAILROOM_LOG_FORMAT", "text", "format of a log line: text, logfmt or json",
     into(&LogSettings::format, parse_choice<LogFormat>, log_formats), names_of(log_formats)},
};

std::string_view section_of(std::string_view key) {
  return key.substr(0, key.find('.'));
}

std::string_view name_of(std::string_view key) {
  return key.substr(key.find('.') + 1);
}

/// The keys that an unknown key may stand for, indexed by the text to type. Within a known section only names
/// are compared, so that a shared section does not make them similar. A key without a section may lack only
/// that.
std::map<std::string, std::string> suggestions_for(const std::string& key) {
  std::map<std::string, std::string> suggestions;
  const bool has_section = key.find('.') != std::string::npos;
  const bool knows_section = has_section && is_section(section_of(key));
  for (const auto& entry : entries) {
    const std::string whole(entry.key);
    if (knows_section && section_of(whole) != section_of(key)) continue;
    suggestions.emplace(has_section && !knows_section ? whole : std::string(name_of(whole)), whole);
    if (!has_section) suggestions.emplace(section_of(whole), section_of(whole));
  }
  return suggestions;
}

}  // namespace

std::span<const KeyEntry> key_table() {
  return entries;
}

const KeyEntry* find_key(std::string_view key) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

SettingValue make_value(const KeyEntry& entry, std::string text, std::vector<std::string> items,
                        Origin origin) {
  const bool has_key = entry.is_list && std::ranges::any_of(items, is_key_text);
  return {.key = std::string(entry.key),
          .text = std::move(text),
          .items = std::move(items),
          .origin = std::move(origin),
          .is_secret = entry.is_secret || has_key};
}

bool is_section(std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return section_of(entry.key) == name; });
}

std::string hint_for_unknown(const std::string& key) {
  const auto suggestions = suggestions_for(key);
  std::vector<std::string> candidates;
  for (const auto& [typed, meant] : suggestions)
    candidates.push_back(typed);
  const auto nearest = nearest_word(is_section(section_of(key)) ? name_of(key) : key, candidates);
  return nearest.empty() ? "mailroom.yaml.example lists every key"
                         : fmt::format("did you mean {}?", suggestions.at(nearest));
}

}  // namespace mailroom
