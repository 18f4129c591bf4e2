#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "base/clock.hpp"
#include "config/key_table.hpp"
#include "support/build_paths.hpp"
#include "support/refused_settings.hpp"

namespace mailroom::test::config_test {
namespace {

const std::string digits_a(64, 'a');
const std::string digits_b(64, 'b');
const std::string digits_c(64, 'c');

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const auto& item : items)
    text += (text.empty() ? "" : ",") + item;
  return text;
}

std::string name_of(config::CollectFormat format) {
  return format == config::CollectFormat::csv ? "csv" : "jsonl";
}

std::string size_text(int bytes) {
  const auto kilobytes = bytes / 1024;
  return kilobytes % 1024 == 0 ? std::to_string(kilobytes / 1024) + "MB" : std::to_string(kilobytes) + "kB";
}

/// Those by which a provider's events are known.
std::string event_secrets(const config::Settings& settings, const char* provider) {
  const auto found = settings.bounce.secret_files.find(provider);
  return found == settings.bounce.secret_files.end() ? std::string() : joined(found->second);
}

/// A key, its default, and three values that are valid in every origin.
struct Row {
  std::string key, by_default, in_file, in_environment, in_flag;
  std::function<std::string(const config::Settings&)> effective;
};

const std::vector<Row> own_rows{
    {"database.url", "", "host=f", "host=e", "host=g",
     [](const config::Settings& s) { return s.database.url; }},
    {"database.schema", "", "f", "e", "g", [](const config::Settings& s) { return s.database.schema; }},
    {"database.password_file", "", "f", "e", "g",
     [](const config::Settings& s) { return s.database.password_file; }},
    {"signing.key_file", "", "f", "e", "g", [](const config::Settings& s) { return s.signing.key_file; }},
    {"signing.key", "", digits_a, digits_b, digits_c,
     [](const config::Settings& s) { return s.signing.key; }},
    {"signing.previous_key_files", "", "f1,f2", "e1," + digits_b, "g",
     [](const config::Settings& s) { return joined(s.signing.previous_keys); }},
    {"signing.allow_readable_key", "false", "true", "", "false",
     [](const config::Settings& s) { return s.signing.allow_readable_key ? "true" : "false"; }},
    {"collect.channel", "token_insert", "f", "e", "g",
     [](const config::Settings& s) { return s.collect.channel; }},
    {"collect.queue", "mailroom", "f", "e,f", "g",
     [](const config::Settings& s) { return joined(s.collect.queues); }},
    {"collect.batch_limit", "10", "1", "10000", "12",
     [](const config::Settings& s) { return std::to_string(s.collect.batch_limit.max); }},
    {"collect.lines_per_claim", "1", "1", "10000", "12",
     [](const config::Settings& s) { return std::to_string(s.collect.lines_per_claim); }},
    {"collect.batch_timeout", "5s", "0s", "1d", "3s",
     [](const config::Settings& s) { return format_duration(s.collect.batch_timeout.max); }},
    {"collect.line_cost", "100ms", "1ms", "1d", "3s",
     [](const config::Settings& s) { return format_duration(s.collect.line_cost); }},
    {"collect.healthcheck_interval", "4m30s", "1s", "1d", "3s",
     [](const config::Settings& s) { return format_duration(s.collect.healthcheck_interval); }},
    {"collect.format", "csv", "jsonl", "csv", "jsonl",
     [](const config::Settings& s) { return name_of(s.collect.format); }},
    {"collect.poll_interval", "1s", "10ms", "1h", "3s",
     [](const config::Settings& s) { return format_duration(s.collect.poll_interval); }},
    {"collect.notify", "when_listening", "always", "when_listening", "always",
     [](const config::Settings& s) {
       return s.collect.notify == config::NotifyWhen::always ? "always" : "when_listening";
     }},
    {"queue.max_wait", "30s", "0s", "1d", "3s",
     [](const config::Settings& s) { return format_duration(s.queue.max_wait); }},
    {"send.relay", "", "smtp://f", "smtp://e", "smtps://g",
     [](const config::Settings& s) {
       return s.send.path.targets.empty() ? std::string() : s.send.path.targets.front().url;
     }},
    {"send.password_file", "", "f", "e", "g",
     [](const config::Settings& s) { return s.send.path.password_file; }},
    {"send.provider", "", "mailgun", "none", "ses",
     [](const config::Settings& s) { return s.send.path.provider; }},
    {"send.token_file", "", "f", "e", "g", [](const config::Settings& s) { return s.send.path.token_file; }},
    {"send.token_command", "", "f", "e x", "g",
     [](const config::Settings& s) { return s.send.path.token_command; }},
    {"send.ca_file", "", "f", "e", "g", [](const config::Settings& s) { return s.send.path.ca_file; }},
    {"send.hello_name", "", "f.example", "[192.0.2.1]", "g.example",
     [](const config::Settings& s) { return s.send.path.hello_name; }},
    {"send.plaintext_relay_for_tests", "false", "true", "false", "true",
     [](const config::Settings& s) { return s.send.path.plaintext_for_tests ? "true" : "false"; }},
    {"send.from", "", "f@mail.example", "E <e@mail.example>", "g@mail.example",
     [](const config::Settings& s) { return s.send.from; }},
    {"send.reply_to", "", "f@mail.example", "e@mail.example", "g@mail.example",
     [](const config::Settings& s) { return s.send.reply_to; }},
    {"send.bounce_address", "", "f+{id}@a.example", "e+{id}@a.example", "g+{id}@a.example",
     [](const config::Settings& s) { return s.send.bounce_address; }},
    {"send.unsubscribe_link", "", "https://f/{token}", "https://e/{token}", "https://g/{token}",
     [](const config::Settings& s) { return s.send.unsubscribe_link; }},
    {"send.unsubscribe_mailto", "", "f+{id}@a.example", "e+{id}@a.example", "g+{id}@a.example",
     [](const config::Settings& s) { return s.send.unsubscribe_mailto; }},
    {"send.link", "", "https://f/{token}", "https://e/{token}", "https://g/{token}",
     [](const config::Settings& s) { return s.send.link; }},
    {"send.templates", "", "f", "e", "g", [](const config::Settings& s) { return s.send.templates; }},
    {"send.headers", "", "X-A:1,X-B:2", "X-C: 3,X-D: 4", "X-E: 5",
     [](const config::Settings& s) { return joined(s.send.headers); }},
    {"send.max_size", "10MB", "64kB", "100MB", "1500kB",
     [](const config::Settings& s) { return size_text(s.send.max_size); }},
    {"send.connections", "4", "1", "64", "9",
     [](const config::Settings& s) { return std::to_string(s.send.path.connections); }},
    {"send.batch_limit", "10", "1", "10000", "9",
     [](const config::Settings& s) { return std::to_string(s.send.batch_limit); }},
    {"send.timeout", "30s", "1s", "10m", "2m",
     [](const config::Settings& s) { return format_duration(s.send.path.timeout); }},
    {"send.rate", "", "5/h", "1/d", "3/2d",
     [](const config::Settings& s) {
       return s.send.path.rate ? config::format_rate(*s.send.path.rate) : "";
     }},
    {"send.per_recipient", "", "5/h", "1/d", "3/2d",
     [](const config::Settings& s) {
       return s.send.per_recipient ? config::format_rate(*s.send.per_recipient) : "";
     }},
    {"send.redirect_to", "", "a@x.example", "b@x.example", "c@x.example",
     [](const config::Settings& s) { return s.send.redirect_to; }},
    {"send.allow", "", "a@x.example", "b@x.example,@y.example", "@z.example",
     [](const config::Settings& s) { return joined(s.send.allow); }},
    {"send.when_unknown", "resend", "hold", "resend", "hold",
     [](const config::Settings& s) {
       return s.send.when_unknown == config::WhenUnknown::hold ? "hold" : "resend";
     }},
    {"send.supersede", "true", "false", "true", "false",
     [](const config::Settings& s) { return s.send.supersede ? "true" : "false"; }},
    {"send.suppress_refused", "false", "true", "false", "true",
     [](const config::Settings& s) { return s.send.suppress_refused ? "true" : "false"; }},
    {"send.evidence", "true", "false", "true", "false",
     [](const config::Settings& s) { return s.send.evidence ? "true" : "false"; }},
    {"send.throttled_by", "", "4.7.28", "a,b", "c",
     [](const config::Settings& s) { return joined(s.send.path.throttled_by); }},
    {"bounce.resend_secret_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return joined(s.bounce.resend_secret_files); }},
    {"bounce.sns_topics", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return joined(s.bounce.sns_topics); }},
    {"bounce.postmark_secret_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return event_secrets(s, "postmark"); }},
    {"bounce.mailgun_secret_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return event_secrets(s, "mailgun"); }},
    {"bounce.sendgrid_key_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return event_secrets(s, "sendgrid"); }},
    {"bounce.brevo_secret_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return event_secrets(s, "brevo"); }},
    {"bounce.mailjet_secret_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return event_secrets(s, "mailjet"); }},
    {"bounce.sparkpost_secret_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return event_secrets(s, "sparkpost"); }},
    {"bounce.report_secret_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return event_secrets(s, "report"); }},
    {"bounce.suppress_after", "", "5/h", "1/d", "3/2d",
     [](const config::Settings& s) {
       return s.bounce.suppress_after ? config::format_rate(*s.bounce.suppress_after) : "";
     }},
    {"bounce.password_file", "", "f", "e", "g",
     [](const config::Settings& s) { return s.bounce.password_file; }},
    {"bounce.token_file", "", "f", "e", "g", [](const config::Settings& s) { return s.bounce.token_file; }},
    {"bounce.token_command", "", "f", "e x", "g",
     [](const config::Settings& s) { return s.bounce.token_command; }},
    {"bounce.ca_file", "", "f", "e", "g", [](const config::Settings& s) { return s.bounce.ca_file; }},
    {"submission.listen", "", "127.0.0.1:587,/f", "[::1]:587", "/g=shop",
     [](const config::Settings& s) { return joined(s.submission.listen); }},
    {"submission.http", "", "127.0.0.1:8587", "[::1]:8587", "/g",
     [](const config::Settings& s) { return s.submission.http; }},
    {"submission.timezone", "UTC", "Europe/Vienna", "America/New_York", "GMT",
     [](const config::Settings& s) { return s.submission.timezone; }},
    {"submission.attachment_hosts", "", "a.example,b.example", "c.example", "d.example",
     [](const config::Settings& s) { return joined(s.submission.attachment_hosts); }},
    {"submission.certificate", "", "f", "e", "g",
     [](const config::Settings& s) { return s.submission.certificate; }},
    {"submission.key", "", "f", "e", "g", [](const config::Settings& s) { return s.submission.key; }},
    {"submission.connections", "1000", "1", "100000", "9",
     [](const config::Settings& s) { return std::to_string(s.submission.connections); }},
    {"submission.connections_per_address", "100", "1", "100000", "9",
     [](const config::Settings& s) { return std::to_string(s.submission.connections_per_address); }},
    {"submission.max_size", "", "64kB", "100MB", "1500kB",
     [](const config::Settings& s) { return s.submission.max_size ? size_text(*s.submission.max_size) : ""; }},
    {"submission.max_recipients", "1000", "100", "999", "200",
     [](const config::Settings& s) { return std::to_string(s.submission.max_recipients); }},
    {"submission.memory", "256MB", "1MB", "2047MB", "1500kB",
     [](const config::Settings& s) { return size_text(s.submission.memory); }},
    {"submission.timeout", "5m", "1s", "1h", "3s",
     [](const config::Settings& s) { return format_duration(s.submission.timeout); }},
    {"submission.patience", "20s", "1s", "10m", "3s",
     [](const config::Settings& s) { return format_duration(s.submission.patience); }},
    {"submission.login_cache", "5m", "0s", "1d", "3s",
     [](const config::Settings& s) { return format_duration(s.submission.login_cache); }},
    {"submission.local_to", "", "f@mail.example", "e@mail.example", "g@mail.example",
     [](const config::Settings& s) { return s.submission.local_to; }},
    {"submission.local_from", "", "f@mail.example", "e@mail.example", "g@mail.example",
     [](const config::Settings& s) { return s.submission.local_from; }},
    {"submission.spool", "", "/s", "/t", "/u", [](const config::Settings& s) { return s.submission.spool; }},
    {"submission.aliases", "/etc/aliases", "/a", "/b", "/c",
     [](const config::Settings& s) { return s.submission.aliases; }},
    {"submission.senders", "", "a@x.example", "b@x.example,@y.example", "@z.example",
     [](const config::Settings& s) { return joined(s.submission.senders); }},
    {"submission.return_path", "replace", "keep", "replace", "keep",
     [](const config::Settings& s) { return s.submission.keeps_return_path ? "keep" : "replace"; }},
    {"submission.header_options", "true", "false", "true", "false",
     [](const config::Settings& s) { return s.submission.header_options ? "true" : "false"; }},
    {"sink.to", "", "https://f", "https://e", "https://g",
     [](const config::Settings& s) { return s.sink.to; }},
    {"sink.exec", "", "f", "e 'x y'", "g", [](const config::Settings& s) { return s.sink.exec; }},
    {"sink.in_flight", "64", "1", "1024", "9",
     [](const config::Settings& s) { return std::to_string(s.sink.in_flight); }},
    {"sink.timeout", "30s", "100ms", "1h", "2m",
     [](const config::Settings& s) { return format_duration(s.sink.timeout); }},
    {"sink.ack_on", "3", "stdout", "3", "stdout",
     [](const config::Settings& s) { return s.sink.ack_on == config::AckOn::stdout ? "stdout" : "3"; }},
    {"sink.when_unknown", "resend", "hold", "resend", "hold",
     [](const config::Settings& s) {
       return s.sink.when_unknown == config::WhenUnknown::hold ? "hold" : "resend";
     }},
    {"sink.ca_file", "", "f", "e", "g", [](const config::Settings& s) { return s.sink.ca_file; }},
    {"sink.signing_secret_files", "", "f1,f2", "e", "g1,g2",
     [](const config::Settings& s) { return joined(s.sink.signing_secret_files); }},
    {"sink.password_file", "", "f", "e", "g", [](const config::Settings& s) { return s.sink.password_file; }},
    {"sink.credentials_file", "", "f", "e", "g",
     [](const config::Settings& s) { return s.sink.credentials_file; }},
    {"sink.stream", "MAILROOM", "f", "e", "g", [](const config::Settings& s) { return s.sink.stream; }},
    {"sink.subject", "mailroom.{queue}.{action}", "f", "e", "g",
     [](const config::Settings& s) { return s.sink.subject; }},
    {"sink.monitor", "", "http://f", "http://e", "http://g",
     [](const config::Settings& s) { return s.sink.monitor; }},
    {"sink.exchange", "", "f", "e", "g", [](const config::Settings& s) { return s.sink.exchange; }},
    {"sink.routing_key", "{queue}", "f", "e", "g",
     [](const config::Settings& s) { return s.sink.routing_key; }},
    {"sink.event_source", "", "/f", "/e", "https://g/?h#i",
     [](const config::Settings& s) { return s.sink.event_source; }},
    {"metrics.listen", "", "127.0.0.1:9464", "[::1]:80", "unix:/run/mailroom.sock",
     [](const config::Settings& s) { return s.metrics.listen ? s.metrics.listen->text() : ""; }},
    {"desk.listen", "127.0.0.1:8026", "127.0.0.1:9464", "[::1]:80", "unix:/run/mailroom.sock",
     [](const config::Settings& s) { return s.desk.listen ? s.desk.listen->text() : ""; }},
    {"desk.url", "", "https://f", "https://e", "https://g", [](const config::Settings& s) { return s.desk.url; }},
    {"desk.idle_timeout", "30m", "1m", "1d", "2h",
     [](const config::Settings& s) { return format_duration(s.desk.idle_timeout); }},
    {"desk.session_timeout", "12h", "1m", "7d", "2h",
     [](const config::Settings& s) { return format_duration(s.desk.session_timeout); }},
    {"trace.endpoint", "", "http://f", "http://e", "https://g/v1/traces",
     [](const config::Settings& s) { return s.trace.endpoint; }},
    {"trace.sample", "1", "0.25", "0", "0.5",
     [](const config::Settings& s) { return fmt::format("{}", s.trace.sample); }},
    {"trace.headers_file", "", "f", "e", "g", [](const config::Settings& s) { return s.trace.headers_file; }},
    {"trace.environment", "", "f", "e", "g", [](const config::Settings& s) { return s.trace.environment; }},
    {"audit.retention", "30d", "1h", "36500d", "7d12h",
     [](const config::Settings& s) { return format_duration(s.audit.retention); }},
    {"messages.retention", "7d", "1h", "36500d", "3d",
     [](const config::Settings& s) { return format_duration(s.messages.retention); }},
    {"log.level", "info", "debug", "warn", "error",
     [](const config::Settings& s) {
       return std::map<LogLevel, std::string>{{LogLevel::debug, "debug"},
                                              {LogLevel::info, "info"},
                                              {LogLevel::warn, "warn"},
                                              {LogLevel::error, "error"}}
           .at(s.log.level);
     }},
    {"log.format", "text", "logfmt", "json", "text",
     [](const config::Settings& s) {
       return std::vector<std::string>{"text", "logfmt", "json"}[static_cast<std::size_t>(s.log.format)];
     }},
};

/// Of a setting that one provider has, as its directory says.
Row option_row(const config::KeyEntry& entry) {
  return {std::string(entry.key), "", "f", "e", "g", [key = entry.key](const config::Settings& s) {
            return s.send.path.option(key);
          }};
}

/// In the order of the table.
const std::vector<Row>& all_rows() {
  static const auto rows = [] {
    std::vector<Row> all;
    for (const auto& entry : config::key_table()) {
      const auto own = std::ranges::find(own_rows, entry.key, &Row::key);
      all.push_back(own == own_rows.end() ? option_row(entry) : *own);
    }
    return all;
  }();
  return rows;
}

std::string yaml_of(const Row& row, bool is_list) {
  const auto point = row.key.find('.');
  const auto value = is_list ? "[" + row.in_file + "]" : row.in_file;
  return row.key.substr(0, point) + ":\n  " + row.key.substr(point + 1) + ": " + value + "\n";
}

void check(const config::Settings& settings, const Row& row, const std::string& expected,
           config::OriginKind kind, const std::string& where) {
  CHECK(row.effective(settings) == expected);
  const auto& value = config::setting_of(settings, row.key);
  CHECK(value.text == expected);
  CHECK(value.origin.kind == kind);
  CHECK(value.origin.where == where);
}

}  // namespace

TEST_CASE(
    "for every key a flag overrides the environment, the environment the file, and the file the default") {
  const WorkingDirectory directory;
  const auto& rows = all_rows();
  for (const auto& row : own_rows) {
    INFO(row.key);
    CHECK(config::find_key(row.key) != nullptr);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto& entry = config::key_table()[i];
    INFO(row.key);
    REQUIRE(entry.key == row.key);
    CHECK(entry.default_text == row.by_default);
    std::filesystem::remove("mailroom.yaml");
    check(config::load_settings({}, {}), row, row.by_default, config::OriginKind::default_value, "default");
    directory.write("mailroom.yaml", yaml_of(row, entry.is_list));
    check(config::load_settings({}, {}), row, row.in_file, config::OriginKind::file, "mailroom.yaml:2:3");
    config::EnvironmentVariables environment;
    if (!entry.environment.empty()) {
      const std::string variable(entry.environment);
      environment[variable] = "";
      check(config::load_settings({}, environment), row, row.in_file, config::OriginKind::file,
            "mailroom.yaml:2:3");
      environment[variable] = row.in_environment;
      check(config::load_settings({}, environment), row, row.in_environment, config::OriginKind::environment,
            variable);
    }
    const config::Overrides overrides{std::nullopt,
                                      {{row.key, "no such", "--early"}, {row.key, row.in_flag, "--flag"}}};
    check(config::load_settings(overrides, environment), row, row.in_flag, config::OriginKind::flag,
          "--flag");
  }
}

TEST_CASE("the seven variables of the original collector are a complete configuration") {
  const WorkingDirectory directory;
  const auto settings = config::load_settings({}, {{"MAILROOM_DATABASE_URL", "postgresql://h/d"},
                                                   {"MAILROOM_SECRET_KEY", digits_a},
                                                   {"MAILROOM_CHANNEL_NAME", "token_insert_2"},
                                                   {"MAILROOM_QUEUE_NAME", "sender"},
                                                   {"MAILROOM_BATCH_LIMIT", "25"},
                                                   {"MAILROOM_BATCH_TIMEOUT", "2500"},
                                                   {"MAILROOM_HEALTHCHECK_INTERVAL", "60000"},
                                                   {"MAILROOM_SOMEBODY_ELSES", "left alone"}});
  CHECK(settings.database.url == "postgresql://h/d");
  CHECK(settings.signing.key == digits_a);
  CHECK(settings.collect.channel == "token_insert_2");
  CHECK(settings.collect.queues == std::vector<std::string>{"sender"});
  CHECK(settings.collect.batch_limit.max == 25);
  CHECK(settings.collect.batch_limit.is_fixed());
  CHECK(settings.collect.batch_timeout.max == Milliseconds(2500));
  CHECK(settings.collect.batch_timeout.is_fixed());
  CHECK(settings.collect.healthcheck_interval == Milliseconds(60000));
  CHECK(settings.collect.format == config::CollectFormat::csv);
}

TEST_CASE("a line end after a value in the environment or in the file is no part of it") {
  const test::WorkingDirectory directory;
  std::ofstream("mailroom.yaml") << "database:\n  schema: |\n    mail\ncollect:\n  queue: |\n    a, b\n";
  const auto settings = config::load_settings(
      {}, {{"MAILROOM_DATABASE_URL", "postgresql:///postgres\r\n"}, {"MAILROOM_CHANNEL_NAME", "\n"}});
  CHECK(settings.database.url == "postgresql:///postgres");
  CHECK(settings.database.schema == "mail");
  CHECK(settings.collect.queues == std::vector<std::string>{"a", "b"});
  CHECK(settings.collect.channel == "token_insert");
}

TEST_CASE("the environment of the process is filtered by prefix") {
  REQUIRE(setenv("MAILROOM_TEST_ENTRY", "a=b", 1) == 0);
  const auto environment = config::process_environment();
  REQUIRE(unsetenv("MAILROOM_TEST_ENTRY") == 0);
  CHECK(environment.at("MAILROOM_TEST_ENTRY") == "a=b");
  CHECK(environment.count("PATH") == 0);
}

TEST_CASE(
    "the file is that of --config, else of MAILROOM_CONFIG, else mailroom.yaml in the working directory") {
  const WorkingDirectory directory;
  const auto queue_in = [](const std::optional<std::string>& flag,
                           const config::EnvironmentVariables& environment) {
    return config::only_queue(config::load_settings({flag, {}}, environment));
  };
  CHECK(queue_in({}, {}) == "mailroom");
  directory.write("mailroom.yaml", "collect: {queue: local}");
  directory.write("named.yaml", "collect: {queue: named}");
  directory.write("flag.yaml", "collect: {queue: flag}");
  CHECK(queue_in({}, {}) == "local");
  CHECK(queue_in({}, {{"MAILROOM_CONFIG", ""}}) == "local");
  CHECK(queue_in({}, {{"MAILROOM_CONFIG", "named.yaml"}}) == "named");
  CHECK(queue_in("flag.yaml", {{"MAILROOM_CONFIG", "no such"}}) == "flag");
}

TEST_CASE("settings name the file that was read, and can be loaded without a broken file") {
  const WorkingDirectory directory;
  const config::EnvironmentVariables environment{{"MAILROOM_CONFIG", "broken.yaml"},
                                                 {"MAILROOM_QUEUE_NAME", "second"}};
  CHECK(config::load_settings({}, {}).file.empty());
  directory.write("mailroom.yaml", "collect: {queue: local}");
  CHECK(config::load_settings({}, {}).file == "mailroom.yaml");
  directory.write("broken.yaml", "collect: {qeueu: named}");
  CHECK_THROWS_AS(config::load_settings({}, environment), Error);
  const auto settings = config::load_settings({}, environment, config::FileUse::ignored);
  CHECK(settings.collect.queues.front() == "second");
  CHECK(settings.file.empty());
  CHECK(config::setting_of(settings, "collect.queue").origin.where == "MAILROOM_QUEUE_NAME");
}

TEST_CASE("a file may be empty, or have only comments or sections without keys") {
  const WorkingDirectory directory;
  for (const std::string text :
       {"", "\n# nothing\n", "---\n", "collect:\nlog:\n  # level: debug\n", "{}", "~"}) {
    INFO(text);
    directory.write("mailroom.yaml", text);
    CHECK(config::load_settings({}, {}).collect.batch_limit.max == 10);
  }
}

TEST_CASE("of the key and the key file, the one of the higher origin is used") {
  const WorkingDirectory directory;
  directory.write("mailroom.yaml", "signing: {key_file: from-file}");
  auto settings = config::load_settings({}, {{"MAILROOM_SECRET_KEY", digits_a}});
  CHECK(settings.signing.key == digits_a);
  CHECK(settings.signing.key_file.empty());
  CHECK(config::setting_of(settings, "signing.key_file").text.empty());
  CHECK(config::setting_of(settings, "signing.key_file").origin.kind == config::OriginKind::default_value);
  directory.write("mailroom.yaml", "signing: {key: " + digits_a + "}");
  settings = config::load_settings({}, {{"MAILROOM_SECRET_KEY_FILE", "from-environment"}});
  CHECK(settings.signing.key.empty());
  CHECK(settings.signing.key_file == "from-environment");
}

TEST_CASE("a relative path of a key file starts at the directory of the configuration file") {
  const WorkingDirectory directory;
  directory.write("etc/a.yaml", "signing: {key_file: keys/now, previous_key_files: [old, /abs/older]}");
  auto settings = config::load_settings({"etc/a.yaml", {}}, {});
  CHECK(settings.signing.key_file == "etc/keys/now");
  CHECK(settings.signing.previous_keys == std::vector<std::string>{"etc/old", "/abs/older"});
  CHECK(config::setting_of(settings, "signing.key_file").text == "keys/now");
  settings = config::load_settings(
      {"etc/a.yaml", {}},
      {{"MAILROOM_SECRET_KEY_FILE", "here"}, {"MAILROOM_PREVIOUS_SECRET_KEYS", "old, " + digits_b}});
  CHECK(settings.signing.key_file == "here");
  CHECK(settings.signing.previous_keys == std::vector<std::string>{"old", digits_b});
}

TEST_CASE("a path with a comma is one item of the file's list") {
  const WorkingDirectory directory;
  directory.write("mailroom.yaml", "signing: {previous_key_files: ['a,b', c]}");
  CHECK(config::load_settings({}, {}).signing.previous_keys == std::vector<std::string>{"a,b", "c"});
}

TEST_CASE("keys and connection strings are marked secret, and so is a list with a key in it") {
  const WorkingDirectory directory;
  auto settings = config::load_settings({}, {{"MAILROOM_PREVIOUS_SECRET_KEYS", "a,b"}});
  std::string secrets;
  for (const auto& value : settings.values)
    secrets += value.is_secret ? value.key + " " : "";
  CHECK(secrets == "database.url signing.key ");
  settings = config::load_settings({}, {{"MAILROOM_PREVIOUS_SECRET_KEYS", "a," + digits_b}});
  CHECK(config::setting_of(settings, "signing.previous_key_files").is_secret);
}

TEST_CASE("the signing key may be in a configuration file that only its owner can read") {
  const WorkingDirectory directory;
  for (const unsigned mode : {0600U, 0400U}) {
    std::filesystem::remove("mailroom.yaml");
    directory.write("mailroom.yaml", "signing:\n  key: " + digits_a + "\n", mode);
    CHECK(config::load_settings({}, {}).signing.key == digits_a);
  }
  for (const auto& [mode, shown] : {std::pair{0640U, "0640"}, {0644U, "0644"}, {0602U, "0602"}}) {
    std::filesystem::permissions("mailroom.yaml", static_cast<std::filesystem::perms>(mode));
    check_refused(
        {}, {{"MAILROOM_SECRET_KEY", digits_b}},
        std::string("mailroom.yaml:2:3: signing.key is in a file of mode ") + shown + ", which must be 0600",
        "chmod 600 mailroom.yaml, or use signing.key_file");
  }
}

TEST_CASE("the example file is accepted unchanged and has the defaults") {
  const WorkingDirectory directory;
  const auto plain = config::load_settings({}, {});
  const auto example = config::load_settings({source_directory + "/mailroom.yaml.example", {}}, {});
  for (const auto& row : all_rows()) {
    INFO(row.key);
    CHECK(row.effective(example) == row.effective(plain));
    const bool has_default = !row.by_default.empty();
    CHECK((config::setting_of(example, row.key).origin.kind == config::OriginKind::file) == has_default);
  }
}

TEST_CASE("the example file has every key, its meaning and its variable, in the order of the table") {
  std::ifstream file(source_directory + "/mailroom.yaml.example");
  std::stringstream buffer;
  buffer << file.rdbuf();
  const auto text = buffer.str();
  std::size_t at = 0;
  for (const auto& entry : config::key_table()) {
    INFO(entry.key);
    const auto point = entry.key.find('.');
    const std::string name(entry.key.substr(point + 1));
    const auto section =
        text.rfind("\n" + std::string(entry.key.substr(0, point)) + ":\n", text.find(name, at));
    CHECK(section != std::string::npos);
    const auto meaning = text.find("\n  # " + std::string(entry.meaning) + "\n", at);
    REQUIRE(meaning != std::string::npos);
    const auto live = text.find("\n  " + name + ": ", meaning);
    const auto commented = text.find("\n  # " + name + ": ", meaning);
    const auto line = entry.default_text.empty() ? commented : live;
    REQUIRE(line != std::string::npos);
    CHECK(text.substr(meaning, line - meaning).find(entry.environment) != std::string::npos);
    at = text.find('\n', line + 1);
  }
}

TEST_CASE("a role that submits has values of its own, and a flag holds for all") {
  const WorkingDirectory directory;
  directory.write(
      "mailroom.yaml",
      "submission:\n  connections: 10\n  senders: ['@shop.example']\n  roles:\n    shop:\n      connections: 5\n"
      "    tickets:\n      header_options: false\n      senders: ['@a.example', b@c.example]\n");
  const auto settings = config::load_settings({}, {});
  REQUIRE(settings.submission_roles.size() == 2);
  const auto& shop = settings.submission_roles[0];
  const auto& tickets = settings.submission_roles[1];
  CHECK(shop.name == "shop");
  CHECK(shop.submission.connections == 5);
  CHECK(joined(shop.submission.senders) == "@shop.example");
  CHECK(tickets.submission.connections == 10);
  CHECK(joined(tickets.submission.senders) == "@a.example,b@c.example");
  CHECK_FALSE(tickets.submission.header_options);
  CHECK(tickets.values.front().name() == "submission.roles.tickets.header_options");
  CHECK(settings.submission.header_options);
  const auto flagged = config::load_settings({std::nullopt, {{"submission.connections", "1", "--flag"}}}, {});
  CHECK(flagged.submission_roles[0].submission.connections == 1);
  check_files_refused(
      {{"submission:\n  roles:\n    shop:\n      listen: [/x]\n",
        "mailroom.yaml:4:7: submission.roles.shop.listen is not a key of a role",
        "submission.listen holds for all roles"},
       {"submission:\n  roles:\n    shop:\n      sendres: x\n",
        "mailroom.yaml:4:7: submission.roles.shop.sendres is not a key of a role", "did you mean senders?"},
       {"submission:\n  roles:\n    shop: 1\n",
        "mailroom.yaml:3:5: submission.roles.shop is a role, and must hold keys", ""},
       {"submission:\n  roles: [shop]\n",
        "mailroom.yaml:2:3: submission.roles is a section, and must hold roles by name", ""},
       {"submission:\n  roles:\n    shop:\n      connections: many\n",
        "submission.roles.shop.connections is many (from mailroom.yaml:4:7), and must be a whole number from 1 to 100000",
        ""}});
}

TEST_CASE("a key changes its own section alone") {
  const WorkingDirectory directory;
  const auto before = config::load_settings({}, {});
  for (const auto& row : all_rows()) {
    const auto& text = row.in_file == row.by_default ? row.in_flag : row.in_file;
    auto after = config::load_settings({std::nullopt, {{row.key, text, "--flag"}}}, {});
    // It holds for the files of relays too.
    CHECK(after.send.path.allows_readable_files == after.signing.allow_readable_key);
    after.send.path.allows_readable_files = before.send.path.allows_readable_files;
    const std::map<std::string, bool> are_same{{"database", before.database == after.database},
                                               {"signing", before.signing == after.signing},
                                               {"collect", before.collect == after.collect},
                                               {"queue", before.queue == after.queue},
                                               {"send", before.send == after.send},
                                               {"submission", before.submission == after.submission},
                                               {"sink", before.sink == after.sink},
                                               {"metrics", before.metrics == after.metrics},
                                               {"desk", before.desk == after.desk},
                                               {"trace", before.trace == after.trace},
                                               {"audit", before.audit == after.audit},
                                               {"messages", before.messages == after.messages},
                                               {"log", before.log == after.log}};
    for (const auto& [section, is_same] : are_same) {
      CAPTURE(row.key, section);
      CHECK(is_same != row.key.starts_with(section + "."));
    }
  }
}

TEST_CASE("every listed choice of a key is accepted, and an error lists the choices") {
  for (const auto& entry : config::key_table()) {
    INFO(entry.key);
    const auto load = [&](std::string_view text) {
      config::load_settings({std::nullopt, {{std::string(entry.key), std::string(text), "--flag"}}}, {});
    };
    for (const auto& choice : entry.target.choices)
      CHECK_NOTHROW(load(choice));
    std::string refusal;
    try {
      load("no such choice");
    } catch (const Error& error) {
      refusal = error.what();
    }
    const bool takes_only_some = refusal.find("must be one of: ") != std::string::npos;
    CHECK(takes_only_some == !entry.target.choices.empty());
  }
}

}  // namespace mailroom::test::config_test
