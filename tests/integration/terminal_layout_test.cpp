// What commands write to a terminal: no line is longer than the terminal is wide, and without a UTF-8 locale
// all text is ASCII.

#include <fmt/format.h>

#include "base/terminal_text.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/terminal.hpp"
#include "support/test_collector.hpp"
#include "support/test_database.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::terminal_layout_test {
namespace {

using Arguments = std::vector<std::string>;

/// A queue with some of everything: batches, skipped tokens, gaps, findings.
void fill(db::Connection& connection) {
  insert_accounts(connection, 30);
  connection.run("UPDATE accounts SET email = repeat('long-address-', 8) || '@mail.example' WHERE id = 30");
  connection.run("UPDATE tokens SET expires_at = 5 WHERE id IN (3, 4)");
  connection.run(
      "INSERT INTO mailroom_batches (queue, ids, collector, claimed_by, claimed_at, cursor, open_from, "
      "gap_ids) "
      "VALUES ('mailroom', '{[1,9)}', 1, 'mailroom collect@a-host-with-a-long-name.mail.example:12345', "
      "now() - interval '1 hour', 8, 1, '{}')");
}

const std::vector<Arguments>& commands() {
  static const std::vector<Arguments> all{{"status"},
                                          {"doctor"},
                                          {"audit"},
                                          {"audit", "user1"},
                                          {"audit", "token:3"},
                                          {"audit", "batch:1"},
                                          {"tail", "-n", "50"},
                                          {"rewind-cursor", "--to-start", "--dry-run"},
                                          {"rewind-cursor", "--fix-sequence", "--dry-run"},
                                          {"prune", "--older-than", "30d", "--dry-run"},
                                          {"suspend", "user5", "-y"},
                                          {"suspend", "--undo", "user5", "-y"},
                                          {"migrate", "status"},
                                          {"migrate", "verify"},
                                          {"migrate", "down", "--dry-run"},
                                          {"template", "check"},
                                          {"simulate", "--accounts", "3"}};
  return all;
}

std::string sentence(const Arguments& words) {
  std::string text;
  for (const auto& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Commands to copy are not wrapped, nor are words longer than a line.
bool may_be_longer(const std::string& line, std::size_t columns) {
  const auto start = std::min(line.find_first_not_of(' '), line.size());
  const auto text = line.substr(start);
  return text.starts_with("fix: ") ||
         line.size() - std::min(line.find_last_of(' ') + 1, line.size()) > columns / 2;
}

void check_lines(const TerminalRun& run, std::size_t columns) {
  for (const auto& line : plain_lines(run.output)) {
    if (may_be_longer(line, columns)) continue;
    INFO(line);
    CHECK(display_width(line) <= columns);
  }
}

}  // namespace

TEST_CASE("no line of a command is longer than its terminal is wide") {
  TestDatabase database;
  fill(*database.connect());
  const std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", database.conninfo()},
                                                       {"MAILROOM_SECRET_KEY", test_key},
                                                       {"LC_ALL", "C.UTF-8"}};
  for (const std::size_t columns : {60U, 80U, 120U}) {
    for (const auto& words : commands()) {
      INFO(fmt::format("{} at {} columns", sentence(words), columns));
      Arguments command{mailroom_binary};
      command.insert(command.end(), words.begin(), words.end());
      const auto run = run_in_terminal(command, environment, columns);
      CHECK_FALSE(run.output.empty());
      CHECK(run.status != 2);
      check_lines(run, columns);
    }
  }
}

TEST_CASE("wrapped text uses the available width") {
  TestDatabase database;
  const std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", database.conninfo()},
                                                       {"MAILROOM_SECRET_KEY", test_key}};
  std::size_t lines = 1000;
  for (const std::size_t columns : {60U, 80U, 120U}) {
    const auto run = run_in_terminal({mailroom_binary, "doctor"}, environment, columns);
    const auto now = plain_lines(run.output).size();
    CHECK(now < lines);
    lines = now;
  }
}

TEST_CASE("no line of a help text except an example is longer than the terminal is wide") {
  for (const std::string command :
       {"migrate", "collect", "verify", "rewind-cursor", "resend", "revoke", "tail", "suspend", "simulate",
        "status", "audit", "prune", "doctor", "config"}) {
    for (const std::size_t columns : {60U, 80U, 120U}) {
      const auto run = run_in_terminal({mailroom_binary, command, "--help"}, {}, columns);
      for (const auto& line : plain_lines(run.output)) {
        if (line.starts_with("  mailroom ") || line.find(" | ") != std::string::npos) continue;
        INFO(fmt::format("{} at {}: {}", command, columns, line));
        CHECK(display_width(line) <= columns);
      }
    }
  }
}

TEST_CASE("without a UTF-8 locale everything except data is ASCII") {
  TestDatabase database;
  fill(*database.connect());
  const std::map<std::string, std::string> environment{
      {"MAILROOM_DATABASE_URL", database.conninfo()}, {"MAILROOM_SECRET_KEY", test_key}, {"LC_ALL", "C"}};
  auto all = commands();
  for (const std::string command : {"collect", "audit", "suspend", "tail", "migrate", "config"})
    all.push_back({command, "--help"});
  for (const auto& words : all) {
    Arguments command{mailroom_binary};
    command.insert(command.end(), words.begin(), words.end());
    const auto run = run_in_terminal(command, environment, 60);
    INFO(sentence(words) << "\n" << run.output);
    CHECK(std::all_of(run.output.begin(), run.output.end(), [](unsigned char c) { return c < 0x80; }));
  }
}

}  // namespace mailroom::test::terminal_layout_test
