#include <string>
#include <vector>

#include "config/parse_value.hpp"
#include "support/refused_settings.hpp"

namespace mailroom::test::config_error_test {
namespace {

const std::string digits(64, 'd');
const std::string all_keys = "mailroom.yaml.example lists every key";
const std::string duration_hint = "write 250ms, 5s or 4m30s; a bare number is milliseconds";
const std::string retention_hint = "write 12h, 7d or 1d12h; a bare number is milliseconds";
const std::string key_hint = "make one with: openssl rand -hex 32";

}  // namespace

TEST_CASE("a value that does not parse is refused with its origin and the expected form") {
  const std::string limit = ", and must be a whole number from 1 to 10000";
  check_all_refused({
      {"", {}, {{"collect.batch_limit", "0", "--batch-limit"}}, "--batch-limit is '0'" + limit, ""},
      {"",
       {{"MAILROOM_BATCH_LIMIT", "10001"}},
       {},
       "collect.batch_limit is 10001 (from MAILROOM_BATCH_LIMIT)" + limit,
       ""},
      {"collect:\n  batch_limit: ten\n",
       {},
       {},
       "collect.batch_limit is ten (from mailroom.yaml:2:3)" + limit,
       ""},
      {"collect: {batch_limit: ''}",
       {},
       {},
       "collect.batch_limit is empty (from mailroom.yaml:1:11)" + limit,
       ""},
      {"",
       {{"MAILROOM_BATCH_LIMIT", "5 "}},
       {},
       "collect.batch_limit is 5  (from MAILROOM_BATCH_LIMIT)" + limit,
       ""},
      {"",
       {{"MAILROOM_BATCH_LIMIT", "99999999999999"}},
       {},
       "collect.batch_limit is 99999999999999 (from MAILROOM_BATCH_LIMIT)" + limit,
       ""},
      {"",
       {{"MAILROOM_BATCH_LIMIT", "1\n2"}},
       {},
       "collect.batch_limit (from MAILROOM_BATCH_LIMIT) must be a whole number from 1 to 10000",
       ""},
      {"",
       {{"MAILROOM_BATCH_TIMEOUT", "5x"}},
       {},
       "collect.batch_timeout is 5x (from MAILROOM_BATCH_TIMEOUT), and must be a duration from 0s to 1d",
       duration_hint},
      {"",
       {{"MAILROOM_BATCH_TIMEOUT", "1d1ms"}},
       {},
       "collect.batch_timeout is 1d1ms (from MAILROOM_BATCH_TIMEOUT), and must be a duration from 0s to 1d",
       duration_hint},
      {"",
       {{"MAILROOM_POLL_INTERVAL", "9"}},
       {},
       "collect.poll_interval is 9 (from MAILROOM_POLL_INTERVAL), and must be a duration from 10ms to 1h",
       duration_hint},
      {"",
       {{"MAILROOM_POLL_INTERVAL", "1h1ms"}},
       {},
       "collect.poll_interval is 1h1ms (from MAILROOM_POLL_INTERVAL), and must be a duration from 10ms to 1h",
       duration_hint},
      {"",
       {{"MAILROOM_HEALTHCHECK_INTERVAL", "999"}},
       {},
       "collect.healthcheck_interval is 999 (from MAILROOM_HEALTHCHECK_INTERVAL), and must be a duration "
       "from 1s "
       "to 1d",
       duration_hint},
      {"",
       {{"MAILROOM_AUDIT_RETENTION", "30"}},
       {},
       "audit.retention is 30 (from MAILROOM_AUDIT_RETENTION), and must be a duration from 1h to 36500d",
       retention_hint},
      {"",
       {{"MAILROOM_AUDIT_RETENTION", "59m59s999ms"}},
       {},
       "audit.retention is 59m59s999ms (from MAILROOM_AUDIT_RETENTION), and must be a duration from 1h to "
       "36500d",
       retention_hint},
      {"",
       {{"MAILROOM_AUDIT_RETENTION", "36501d"}},
       {},
       "audit.retention is 36501d (from MAILROOM_AUDIT_RETENTION), and must be a duration from 1h to 36500d",
       retention_hint},
      {"collect: {channel: ''}",
       {},
       {},
       "collect.channel is empty (from mailroom.yaml:1:11), and must be printable text of 1 to 63 bytes",
       ""},
      {"collect: {queue: \"a\\e[31mb\"}",
       {},
       {},
       "collect.queue (from mailroom.yaml:1:11) must be names separated by commas, each printable text of 1 to 63 bytes",
       ""},
      {"",
       {{"MAILROOM_QUEUE_NAME", std::string(64, 'q')}},
       {},
       "collect.queue is " + std::string(64, 'q') +
           " (from MAILROOM_QUEUE_NAME), and must be names separated by commas, each printable text of 1 to 63 bytes",
       ""},
      {"",
       {{"MAILROOM_COLLECT_FORMAT", "CSV"}},
       {},
       "collect.format is CSV (from MAILROOM_COLLECT_FORMAT), and must be one of: csv, jsonl",
       ""},
      {"",
       {},
       {{"log.level", "loud", "--log-level"}},
       "--log-level is 'loud', and must be one of: debug, info, warn, error",
       ""},
      {"log: {format: xml}",
       {},
       {},
       "log.format is xml (from mailroom.yaml:1:7), and must be one of: text, logfmt, json",
       ""},
      {"signing: {allow_readable_key: yes}",
       {},
       {},
       "signing.allow_readable_key is yes (from mailroom.yaml:1:11), and must be true or false",
       ""},
      {"signing: {key_file: ''}",
       {},
       {},
       "signing.key_file is empty (from mailroom.yaml:1:11), and must be the path of a file",
       ""},
  });
}

TEST_CASE("an unknown key is refused with its place and the nearest known one") {
  check_all_refused({
      {"collect:\n  queue: a\n  batchlimit: 5\n",
       {},
       {},
       "mailroom.yaml:3:3: collect.batchlimit is not a configuration key",
       "did you mean collect.batch_limit?"},
      {"colect:\n  queue: a\n",
       {},
       {},
       "mailroom.yaml:1:1: colect is not a configuration key",
       "did you mean collect?"},
      {"# one\n\nbatch_limit: 5\n",
       {},
       {},
       "mailroom.yaml:3:1: batch_limit is not a configuration key",
       "did you mean collect.batch_limit?"},
      {"xyzzy: 1", {}, {}, "mailroom.yaml:1:1: xyzzy is not a configuration key", all_keys},
      {"\"a\\nb\": 1", {}, {}, "mailroom.yaml:1:1: a key must be printable text", ""},
      {"[a]: 1", {}, {}, "mailroom.yaml:1:1: a key must be printable text", ""},
      {"",
       {},
       {{"collect.batch_limits", "5", "--limit"}},
       "--limit sets collect.batch_limits, which is not a configuration key",
       "did you mean collect.batch_limit?"},
  });
}

TEST_CASE("the key and the key file exclude each other at the same origin") {
  check_all_refused({
      {"signing:\n  key: " + digits + "\n  key_file: b\n",
       {},
       {},
       "signing.key (from mailroom.yaml:2:3) and signing.key_file (from mailroom.yaml:3:3) are both given",
       "give one of the two"},
      {"",
       {{"MAILROOM_SECRET_KEY", digits}, {"MAILROOM_SECRET_KEY_FILE", "b"}},
       {},
       "signing.key (from MAILROOM_SECRET_KEY) and signing.key_file (from MAILROOM_SECRET_KEY_FILE) are both "
       "given",
       "give one of the two"},
  });
}

TEST_CASE("a malformed key in the configuration is refused without being shown") {
  const auto cut = digits.substr(1);
  const auto spoilt = cut + "x";
  const std::string no_path = " is neither 64 hexadecimal digits nor a path";
  const std::string path_hint = "write ./NAME for a file with such a name";
  check_all_refused({
      {"",
       {{"MAILROOM_SECRET_KEY", cut}},
       {},
       "the signing key in MAILROOM_SECRET_KEY has 63 hexadecimal digits, and needs 64",
       key_hint},
      {"",
       {{"MAILROOM_SECRET_KEY", spoilt}},
       {},
       "the signing key in MAILROOM_SECRET_KEY contains a character that is not a hexadecimal digit",
       key_hint},
      {"signing:\n  key: abc\n",
       {},
       {},
       "the signing key in mailroom.yaml:2:3 has 3 hexadecimal digits, and needs 64",
       key_hint},
      {"signing:\n  key: [" + digits + "]\n",
       {},
       {},
       "mailroom.yaml:2:3: signing.key must be a single value, and is a list",
       ""},
      {"",
       {{"MAILROOM_PREVIOUS_SECRET_KEYS", "a," + cut}},
       {},
       "item 2 of signing.previous_key_files (from MAILROOM_PREVIOUS_SECRET_KEYS)" + no_path,
       path_hint},
      {"",
       {{"MAILROOM_PREVIOUS_SECRET_KEYS", spoilt}},
       {},
       "item 1 of signing.previous_key_files (from MAILROOM_PREVIOUS_SECRET_KEYS)" + no_path,
       path_hint},
      {"",
       {{"MAILROOM_PREVIOUS_SECRET_KEYS", "a,,b"}},
       {},
       "item 2 of signing.previous_key_files (from MAILROOM_PREVIOUS_SECRET_KEYS) is empty",
       ""},
  });
}

TEST_CASE("a refused value is not shown if it is secret or long") {
  config::SettingValue value;
  value.key = "a.key";
  value.origin = {config::OriginKind::flag, "--flag"};
  value.text = std::string(100, 'x');
  CHECK_THROWS_WITH(config::refuse(value, "short"), "--flag is '" + value.text + "', and must be short");
  value.text += 'x';
  CHECK_THROWS_WITH(config::refuse(value, "short"), "--flag must be short");
  value.text = "x";
  value.is_secret = true;
  CHECK_THROWS_WITH(config::refuse(value, "short"), "--flag must be short");
}

}  // namespace mailroom::test::config_error_test
