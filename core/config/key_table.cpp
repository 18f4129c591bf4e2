// The table of keys: each with its variable, default, meaning, member, limits and options. send_keys.cpp has
// those of mails, submission_keys.cpp those of the service that takes them,
// desk_keys.cpp those of the pages for support.

#include "config/key_table.hpp"

#include <algorithm>
#include <iterator>

#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "config/parse_value.hpp"

namespace mailroom::config {
namespace {

using namespace std::chrono_literals;

using Entry = KeyEntry;

/// Those of the database, the keys and the queue.
std::vector<Entry> queue_keys() {
  return {
      Entry{"database.url", "MAILROOM_DATABASE_URL", "",
            "libpq URI or key=value pairs, several hosts allowed; without it libpq's PG* variables apply",
            as_written(&DatabaseSettings::url)}
          .hides(Secrecy::connection_string)
          .option("", "--database-url URL", "connect with this libpq URI or keyword=value list"),
      Entry{
          "database.schema", "MAILROOM_DATABASE_SCHEMA", "",
          "schema that mailroom lives in, which migrate creates; without it the first of the role's search_path",
          into(&DatabaseSettings::schema, parse_name)}
          .option("", "--schema NAME", "work in the schema NAME of the database"),
      Entry{"database.password_file", "MAILROOM_DATABASE_PASSWORD_FILE", "",
            "file with the password for the database, unless the URL has one",
            into(&DatabaseSettings::password_file, parse_path)}
          .secret_file("database password"),
      Entry{"signing.key_file", "MAILROOM_SECRET_KEY_FILE", "",
            "file of the signing key: 64 hexadecimal digits (make it with: openssl rand -hex 32)",
            into(&SigningSettings::key_file, parse_path)}
          .option("collect doctor send verify", "--key-file FILE",
                  "read the signing key, 64 hexadecimal digits, from FILE")
          .option("reconcile", "--key-file FILE", "verify these tokens with the signing key in FILE"),
      Entry{"signing.key", "MAILROOM_SECRET_KEY", "",
            "the signing key itself, instead of key_file; in a file only if the file has mode 0600",
            into(&SigningSettings::key, parse_key)}
          .hides(Secrecy::key),
      Entry{"signing.previous_key_files", "MAILROOM_PREVIOUS_SECRET_KEYS", "",
            "files of earlier keys, whose tokens verify still accepts",
            into(&SigningSettings::previous_keys, parse_keys_or_paths)}
          .list(),
      Entry{"signing.allow_readable_key", "", "false", "accept a key file that everyone can read",
            into(&SigningSettings::allow_readable_key, parse_switch)},
      Entry{"collect.channel", "MAILROOM_CHANNEL_NAME", "token_insert",
            "NOTIFY channel that wakes the collector", into(&CollectSettings::channel, parse_name)}
          .hides(Secrecy::name)
          .option("collect send", "--channel NAME", "listen for notifications on this channel")
          .option("doctor", "--channel NAME", "check this notification channel"),
      Entry{"collect.queue", "MAILROOM_QUEUE_NAME", "mailroom",
            "queue to collect from; several are separated by commas",
            into(&CollectSettings::queues, parse_names)}
          .hides(Secrecy::name)
          .option("collect", "--queue NAME", "collect from this queue, or from several: recovery,mailroom")
          .option("send", "--queue NAME", "send from this queue, or from several: recovery,mailroom")
          .option("suspend", "--queue NAME", "count and replay the tokens of these queues")
          .option("doctor", "--queue NAME", "check this queue, a row of jobs")
          .option("rewind-cursor", "--queue NAME", "rewind this queue, a row of jobs")
          .option("resend", "--queue NAME", "send with this queue [each that takes their action]")
          .option("revoke", "--queue NAME", "end only tokens that this queue takes [all]")
          .option("audit", "--queue NAME", "show a token's outcome in this queue [each]")
          .option("status", "--queue NAME", "show this queue in detail, or a table of several [all]")
          .option("reconcile", "--queue NAME", "account for them in this queue [each]"),
      Entry{
          "collect.batch_limit", "MAILROOM_BATCH_LIMIT", "10",
          "maximum number of tokens in a line, from 1 to 10000; a range such as 10..500 adapts it to the load",
          into(&CollectSettings::batch_limit, parse_count_range, 1, 10'000)}
          .option("collect", "--batch-limit N", "put at most N tokens in a batch; N..M adapts it"),
      Entry{"collect.lines_per_claim", "MAILROOM_LINES_PER_CLAIM", "1",
            "maximum number of lines in one claim, from 1 to 10000; a crash repeats at most that many",
            into(&CollectSettings::lines_per_claim, parse_count, 1, 10'000)}
          .option("collect", "--lines-per-claim N", "claim at most N lines at a time"),
      Entry{
          "collect.batch_timeout", "MAILROOM_BATCH_TIMEOUT", "5s",
          "maximum time that a token waits for its batch to fill, up to 1d; a range such as 50ms..5s adapts it to the load",
          into(&CollectSettings::batch_timeout, parse_interval_range, 0ms, 24h)}
          .option("collect", "--batch-timeout DURATION",
                  "wait at most this long for a batch to fill; 50ms..5s adapts it"),
      Entry{"collect.line_cost", "MAILROOM_LINE_COST", "100ms",
            "how much delay, summed over tokens, one line saved is worth, from 1ms to 1d; only with a range",
            into(&CollectSettings::line_cost, parse_interval, 1ms, 24h)}
          .option("collect", "--line-cost DURATION", "with a range: delay that one line saved is worth"),
      Entry{"collect.healthcheck_interval", "MAILROOM_HEALTHCHECK_INTERVAL", "4m30s",
            "how long the connection may be silent before it is checked, from 1s to 1d",
            into(&CollectSettings::healthcheck_interval, parse_interval, 1s, 24h)}
          .option("collect", "--healthcheck-interval DURATION", "check an idle connection this often"),
      Entry{"collect.format", "MAILROOM_COLLECT_FORMAT", "csv", "format of a line: csv or jsonl",
            choice(&CollectSettings::format, {{"csv", CollectFormat::csv}, {"jsonl", CollectFormat::jsonl}})}
          .option("collect", "--format FORMAT", "write lines as csv or jsonl"),
      Entry{"collect.poll_interval", "MAILROOM_POLL_INTERVAL", "1s",
            "maximum time between two polls of the queue without a notification, from 10ms to 1h",
            into(&CollectSettings::poll_interval, parse_interval, 10ms, 1h)}
          .option("collect send", "--poll-interval DURATION", "poll this often without a notification"),
      Entry{"collect.notify", "MAILROOM_NOTIFY", "when_listening",
            "when inserts notify: when_listening (not while a collector is polling) or always",
            choice(&CollectSettings::notify,
                   {{"when_listening", NotifyWhen::when_listening}, {"always", NotifyWhen::always}})}
          .option("collect", "--notify WHEN", "choose when inserts notify: when_listening, always"),
      Entry{
          "queue.max_wait", "MAILROOM_QUEUE_MAX_WAIT", "30s",
          "how long a consumer of several queues may leave one without a turn for those of higher priority, from 0 to 1d",
          into(&QueueSettings::max_wait, parse_interval, 0ms, 24h)},
  };
}

/// Those of what comes back.
std::vector<Entry> bounce_keys() {
  std::vector<Entry> keys;
  for (auto more : {webhook::resend_keys(), webhook::ses_keys(), webhook::postmark_keys(),
                    webhook::mailgun_keys(), webhook::sendgrid_keys(), webhook::brevo_keys(),
                    webhook::mailjet_keys(), webhook::sparkpost_keys(), webhook::generic_keys()})
    std::ranges::move(more, std::back_inserter(keys));
  keys.push_back(Entry{
      "bounce.suppress_after", "MAILROOM_BOUNCE_SUPPRESS_AFTER", "",
      "how many mails to an address may come back softly within a time before it is suppressed, such as 5/14d",
      into(&BounceSettings::suppress_after, parse_rate_value)});
  keys.push_back(Entry{"bounce.password_file", "MAILROOM_BOUNCE_PASSWORD_FILE", "",
                       "file with the password for the user of the mailbox that bounces come to",
                       into(&BounceSettings::password_file, parse_path)}
                     .secret_file("password")
                     .option("bounce", "--password-file FILE", "read the password of the mailbox from FILE"));
  keys.push_back(Entry{"bounce.token_file", "MAILROOM_BOUNCE_TOKEN_FILE", "",
                       "file with an OAuth 2 token instead, read at each login",
                       into(&BounceSettings::token_file, parse_path)}
                     .secret_file("access token"));
  keys.push_back(Entry{"bounce.token_command", "MAILROOM_BOUNCE_TOKEN_COMMAND", "",
                       "shell command that prints the token; kept until it ends",
                       as_written(&BounceSettings::token_command)});
  keys.push_back(
      Entry{"bounce.ca_file", "MAILROOM_BOUNCE_CA_FILE", "",
            "file with the certificates that the mailbox's is checked against, if not the system's",
            into(&BounceSettings::ca_file, parse_path)}
          .file("certificates"));
  return keys;
}

/// Those of what takes batches, and of what mailroom says of itself.
std::vector<Entry> output_keys() {
  return {
      Entry{
          "sink.to", "MAILROOM_SINK_TO", "",
          "where collect hands its batches over instead of writing them to stdout, for example https://app.example/tokens",
          as_written(&SinkSettings::to)}
          .hides(Secrecy::url)
          .option("collect outcomes", "--to URL",
                  "hand batches over to a server instead of stdout: https://, nats://, amqps://"),
      Entry{"sink.exec", "MAILROOM_SINK_EXEC", "",
            "program that collect starts and hands its batches over to, with its arguments",
            as_written(&SinkSettings::exec)}
          .hides(Secrecy::command)
          .option("collect outcomes", "--exec COMMAND",
                  "start a program, with its arguments, and hand batches over to it"),
      Entry{"sink.in_flight", "MAILROOM_SINK_IN_FLIGHT", "64",
            "number of lines that are handed over at the same time, from 1 to 1024",
            into(&SinkSettings::in_flight, parse_count, 1, 1024)}
          .option("collect outcomes", "--in-flight N", "hand over N lines at the same time"),
      Entry{"sink.timeout", "MAILROOM_SINK_TIMEOUT", "30s",
            "how long the receiver may take for an answer, from 100ms to 1h",
            into(&SinkSettings::timeout, parse_interval, 100ms, 1h)}
          .option("collect outcomes", "--ack-timeout DURATION",
                  "with --to or --exec: wait at most this long for an answer"),
      Entry{"sink.ack_on", "MAILROOM_SINK_ACK_ON", "3",
            "where the program of sink.exec answers: 3 (a descriptor) or stdout",
            choice(&SinkSettings::ack_on, {{"3", AckOn::descriptor_3}, {"stdout", AckOn::stdout}})}
          .option("collect outcomes", "--ack-on WHERE",
                  "with --exec: read answers from descriptor 3 or from stdout")
          .read_by("exec"),
      Entry{"sink.when_unknown", "MAILROOM_SINK_WHEN_UNKNOWN", "resend",
            "what to do with a token that the receiver may have accepted without an answer: resend or hold",
            choice(&SinkSettings::when_unknown,
                   {{"resend", WhenUnknown::resend}, {"hold", WhenUnknown::hold}})},
      Entry{
          "sink.ca_file", "MAILROOM_SINK_CA_FILE", "",
          "file with the certificates that the receiver's certificate is checked against, if not the system's",
          into(&SinkSettings::ca_file, parse_path)}
          .file("certificates")
          .read_by("http nats amqp"),
      Entry{
          "sink.signing_secret_files", "MAILROOM_SINK_SIGNING_SECRET_FILES", "",
          "files of the secrets that sign HTTP requests, each whsec_ and base64; several while a secret is replaced",
          into(&SinkSettings::signing_secret_files, parse_paths)}
          .secret_file("signing secrets")
          .read_by("http")
          .list(),
      Entry{"sink.password_file", "MAILROOM_SINK_PASSWORD_FILE", "",
            "file with the password of the user that sink.to names",
            into(&SinkSettings::password_file, parse_path)}
          .secret_file("password")
          .read_by("nats amqp"),
      Entry{"sink.credentials_file", "MAILROOM_SINK_CREDENTIALS_FILE", "",
            "file of a NATS user's credentials, with its JWT and seed",
            into(&SinkSettings::credentials_file, parse_path)}
          .secret_file("credentials")
          .read_by("nats"),
      Entry{"sink.stream", "MAILROOM_SINK_STREAM", "MAILROOM", "JetStream stream that must store the batches",
            into(&SinkSettings::stream, parse_name)}
          .read_by("nats"),
      Entry{"sink.subject", "MAILROOM_SINK_SUBJECT", "mailroom.{queue}.{action}",
            "NATS subject of a batch, with {queue} and {action}", as_written(&SinkSettings::subject)}
          .read_by("nats"),
      Entry{
          "sink.monitor", "MAILROOM_SINK_MONITOR", "",
          "where NATS servers serve their state, for doctor: for example http://nats1.example:8222,nats2.example:8222",
          as_written(&SinkSettings::monitor)}
          .read_by("nats")
          .hides(Secrecy::url),
      Entry{
          "sink.exchange", "MAILROOM_SINK_EXCHANGE", "",
          "AMQP exchange that batches are published to; empty for the default exchange, which leads to queues by name",
          as_written(&SinkSettings::exchange)}
          .read_by("amqp"),
      Entry{
          "sink.routing_key", "MAILROOM_SINK_ROUTING_KEY", "{queue}",
          "AMQP routing key of a batch, with {queue} and {action}; with the default exchange the AMQP queue",
          as_written(&SinkSettings::routing_key)}
          .read_by("amqp"),
      Entry{
          "sink.event_source", "MAILROOM_SINK_EVENT_SOURCE", "",
          "source of the CloudEvents headers that make each batch an event, for example /mailroom; without it, no such headers",
          into(&SinkSettings::event_source, parse_uri_reference)}
          .read_by("http nats amqp"),
      Entry{
          "metrics.listen", "MAILROOM_METRICS_LISTEN", "",
          "where collect, send and submission serve metrics for Prometheus: an address and a port, or the path of a unix socket",
          into(&MetricsSettings::listen, parse_listen_value)}
          .needs_restart()
          .option("collect send submission", "--metrics ADDRESS",
                  "serve metrics for Prometheus here: 127.0.0.1:9464, or the path of a unix socket"),
  };
}

/// Those of what watches, and of what is kept.
std::vector<Entry> record_keys() {
  return {
      Entry{
          "trace.endpoint", "MAILROOM_TRACE_ENDPOINT", "",
          "where send, bounce, and collect with a sink send spans by OTLP over HTTP: http://127.0.0.1:4318; without it, no traces",
          as_written(&TraceSettings::endpoint)}
          .hides(Secrecy::url)
          .needs_restart(),
      Entry{
          "trace.sample", "MAILROOM_TRACE_SAMPLE", "1",
          "how many of the traces that begin here are recorded, from 0 to 1; those of applications are if they say so",
          into(&TraceSettings::sample, parse_fraction)}
          .needs_restart(),
      Entry{
          "trace.headers_file", "MAILROOM_TRACE_HEADERS_FILE", "",
          "file of the headers that a hosted collector of traces wants, each a line Name: value; without it, those of OTEL_EXPORTER_OTLP_HEADERS",
          into(&TraceSettings::headers_file, parse_path)}
          .secret_file("headers")
          .needs_restart(),
      Entry{"trace.environment", "MAILROOM_TRACE_ENVIRONMENT", "",
            "the environment that spans name, such as production; without it, none",
            as_written(&TraceSettings::environment)}
          .needs_restart(),
      Entry{"audit.retention", "MAILROOM_AUDIT_RETENTION", "30d",
            "how long prune keeps expired and consumed tokens and batch records, from 1h to 36500d",
            into(&AuditSettings::retention, parse_interval, 1h, 24h * 36'500)}
          .option("prune", "--older-than DURATION",
                  "remove what ended longer ago, from 1h on (else audit.retention)"),
      Entry{"messages.retention", "MAILROOM_MESSAGES_RETENTION", "7d",
            "how long prune keeps the content of messages that have ended, from 1h to 36500d",
            into(&MessagesSettings::retention, parse_interval, 1h, 24h * 36'500)},
      Entry{"log.level", "MAILROOM_LOG_LEVEL", "info",
            "minimum level that is logged: debug, info, warn or error",
            choice(&LogSettings::level, {{"debug", LogLevel::debug},
                                         {"info", LogLevel::info},
                                         {"warn", LogLevel::warn},
                                         {"error", LogLevel::error}})}
          .needs_restart()
          .option("", "--log-level LEVEL", "log from this level on: debug, info, warn or error"),
      Entry{"log.format", "MAILROOM_LOG_FORMAT", "text", "format of a log line: text, logfmt or json",
            choice(&LogSettings::format,
                   {{"text", LogFormat::text}, {"logfmt", LogFormat::logfmt}, {"json", LogFormat::json}})}
          .needs_restart()
          .option("", "--log-format FORMAT", "write log lines as text, logfmt or json"),
  };
}

const std::vector<Entry> entries = [] {
  auto all = queue_keys();
  std::ranges::move(send_keys(), std::back_inserter(all));
  std::ranges::move(bounce_keys(), std::back_inserter(all));
  std::ranges::move(submission_keys(), std::back_inserter(all));
  std::ranges::move(output_keys(), std::back_inserter(all));
  std::ranges::move(desk_keys(), std::back_inserter(all));
  std::ranges::move(record_keys(), std::back_inserter(all));
  return all;
}();

}  // namespace

std::span<const KeyEntry> key_table() {
  return entries;
}

const KeyEntry* find_key(std::string_view key) {
  const auto found = std::ranges::find(entries, key, &KeyEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

KeyTarget secrets_of(std::string provider) {
  return {.store = [provider = std::move(provider)](const SettingValue& value, Settings& settings) {
    settings.bounce.secret_files[provider] = parse_paths(value);
  }};
}

KeyTarget option_of_relay(std::function<std::string(const SettingValue&)> parse) {
  return {.store =
              [parse = std::move(parse)](const SettingValue& value, Settings& settings) {
                auto text = parse(value);
                auto& options = settings.send.path.options;
                options.erase(value.key);
                if (!text.empty()) options.emplace(value.key, std::move(text));
              },
          .is_of_path = true};
}

KeyTarget option_of_relay() {
  return option_of_relay([](const SettingValue& value) { return value.text; });
}

std::vector<std::string> files_of(const KeyEntry& entry, const SettingValue& value) {
  if (entry.content.empty() || value.text.empty()) return {};
  return entry.is_list ? parse_paths(value) : std::vector<std::string>{parse_path(value)};
}

SettingValue make_value(const KeyEntry& entry, std::string text, std::vector<std::string> items,
                        Origin origin) {
  const bool hides_all = entry.secrecy == Secrecy::key || entry.secrecy == Secrecy::connection_string;
  const bool has_key = entry.is_list && std::ranges::any_of(items, is_key_text);
  return {.key = std::string(entry.key),
          .text = std::move(text),
          .items = std::move(items),
          .origin = std::move(origin),
          .is_secret = hides_all || has_key};
}

SettingValue value_from(const KeyEntry& entry, std::string_view text, Origin origin) {
  std::vector<std::string> items;
  for (const auto item : split(text, ','))
    items.emplace_back(entry.is_list ? trimmed(item) : item);
  return make_value(entry, std::string(text), std::move(items), std::move(origin));
}

SettingValue default_value_of(const KeyEntry& entry) {
  return value_from(entry, entry.default_text, {OriginKind::default_value, "default"});
}

}  // namespace mailroom::config
