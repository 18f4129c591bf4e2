// Each symptom of docs/runbook.md is brought about, and the command that the runbook begins with says the
// words that it quotes. A symptom without a situation fails.

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <functional>

#include "base/pattern.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::runbook_test {
namespace {

struct Row {
  std::string symptom;
  std::string command;
  std::string words;
};

/// The rows of the table of symptoms: its second column has a command, its third quotes.
std::vector<Row> rows_of_runbook() {
  static const Pattern row(R"re(\| \[?([^|\]]+)(?:\]\([^)]+\))? \| `(mailroom [^`]+)` \| "([^"]+)" \|)re");
  std::vector<Row> rows;
  for (const auto& line : lines_of(read_file(source_directory + "/docs/runbook.md"))) {
    if (const auto found = row.whole(line)) rows.push_back({(*found)[1], (*found)[2], (*found)[3]});
  }
  return rows;
}

/// As GitHub makes it of a heading.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (c == ' ') anchor += '-';
    if (c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0)
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return anchor;
}

struct Trouble : DatabaseRig {
  std::vector<std::shared_ptr<void>> kept{};  ///< until the command has run

  Trouble() { insert_accounts(*connection, 3); }
};

void unavailable(Trouble& trouble, const std::string& reason) {
  trouble.connection->run(
      "INSERT INTO mailroom_sinks VALUES ('relay.example:587', 9, now() - interval '5 min', now(), "
      "now() + interval '20 s', $1)",
      reason);
}

std::map<std::string, std::function<void(Trouble&)>> situations() {
  const auto nothing = [](Trouble&) {};
  const auto emitted = [](Trouble& trouble) { drain(*attach(trouble.database)); };
  return {
      {"One person got no mail", nothing},
      {"One person got a mail late, or in the wrong place", emitted},
      {"Nobody gets mail, and no sender runs", nothing},
      {"Nobody gets mail, and somebody has stopped it",
       [](Trouble& trouble) {
         OperatorRig(trouble.database).mailroom({"queue", "pause", "mailroom", "--yes"});
       }},
      {"Nobody gets mail, and a session is in the way",
       [](Trouble& trouble) {
         const auto careless = std::shared_ptr<db::Connection>(trouble.database.connect("psql"));
         careless->run("BEGIN");
         careless->run("SELECT mailroom_lock_queue('mailroom')");
         trouble.kept.push_back(careless);
         // A lock counts once it has been held for 10 s.
         REQUIRE(eventually([&] {
           return value<bool>(
               *trouble.connection,
               "SELECT bool_or(now() - xact_start > interval '11 s') FROM pg_stat_activity WHERE "
               "datname = current_database() AND state = 'idle in transaction'");
         }));
       }},
      {"Nobody gets mail, and the database was moved, restored or copied",
       [](Trouble& trouble) { trouble.connection->run("UPDATE mailroom_home SET database = '1'"); }},
      {"Some mails wait, and the relay works",
       [](Trouble& trouble) {
         trouble.connection->run(
             "INSERT INTO mailroom_deliveries (queue, token, state, attempts, not_before, batch, first_at, last_at, reply) VALUES "
             "('mailroom', 1, 'deferred', 0, now() + interval '1 min', 1, now(), now(), 'there is no profile acme')");
       }},
      {"Somebody wants to be forgotten", nothing},
      {"Nobody gets mail, and the relay is down",
       [](Trouble& trouble) { unavailable(trouble, "connection refused"); }},
      {"The relay refuses us, or one mail after another",
       [](Trouble& trouble) { unavailable(trouble, "535 5.7.8 authentication failed"); }},
      {"Messages are never sent, and no trace is left",
       [](Trouble& trouble) {
         trouble.connection->run(
             "ALTER TABLE mailroom_messages DISABLE TRIGGER after_message_insert; "
             "SELECT mailroom_send(ARRAY['ada@x.example'], subject => 'a', text => 'a'); "
             "ALTER TABLE mailroom_messages ENABLE TRIGGER after_message_insert");
       }},
      {"New accounts get no token",
       [](Trouble& trouble) {
         trouble.connection->run("ALTER TABLE accounts DISABLE TRIGGER after_account_insert");
       }},
      {"The program or the server that `collect` hands lines to takes none",
       [](Trouble& trouble) { unavailable(trouble, "the program exited with status 1"); }},
      {"What reads the lines of `collect` was down, and they are lost", emitted},
      {"Scheduled messages do not leave at their time",
       [](Trouble& trouble) {
         trouble.connection->run(
             "SELECT mailroom_send(ARRAY['a@x.example'], subject => 's', text => 't', send_after => now() + interval '1 hour')");
         trouble.connection->run("UPDATE mailroom_messages SET send_after = now() - interval '1 hour'");
         trouble.connection->run("UPDATE mailroom_schedule SET send_after = now() - interval '1 hour'");
       }},
      {"Mails are late", emitted},
      {"Did everybody get a mail, and who did not", emitted},
      {"Mails went out that were wrong", nothing},
      {"The signing key leaked", nothing},
      {"Somebody reads a user's mail", emitted},
      {"Somebody ran `collect` at a terminal", emitted},
      {"The database was restored, or failed over",
       [](Trouble& trouble) {
         drain(*attach(trouble.database));
         trouble.connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
       }},
      {"A migration fails or hangs",
       [](Trouble& trouble) { trouble.connection->run("UPDATE schema_migrations SET dirty = true"); }},
      {"The disk grows", nothing},
      {"A configuration is new, or something else is wrong",
       [](Trouble& trouble) { trouble.connection->run("DROP INDEX tokens_account_idx"); }},
  };
}

/// Without line breaks, which depend on the width of the terminal.
std::string in_one_line(const std::string& text) {
  static const Pattern breaks("\\s+");
  return breaks.replaced(text, " ");
}

}  // namespace

TEST_CASE("the command that the runbook begins with says what is wrong") {
  const auto rows = rows_of_runbook();
  const auto all = situations();
  CHECK(rows.size() == all.size());
  for (const auto& row : rows) {
    INFO(row.symptom);
    REQUIRE(all.contains(row.symptom));
    Trouble trouble;
    all.at(row.symptom)(trouble);
    auto command = row.command;
    // The runbook names an account as its readers do.
    if (const auto at = command.find("user1@mail.example"); at != std::string::npos)
      command.replace(at, std::string("user1@mail.example").size(),
                      value<std::string>(*trouble.connection, "SELECT min(email) FROM accounts"));
    const auto shown = in_one_line(OperatorRig(trouble.database).type(command).output);
    INFO(shown);
    CHECK(shown.find(row.words) != std::string::npos);
  }
}

TEST_CASE("the sections of the runbook stand in the order of its symptoms") {
  static const Pattern link(R"re(^\| \[[^\]]+\]\(#([^)]+)\) \|)re");
  std::vector<std::string> of_table;
  std::vector<std::string> of_sections;
  for (const auto& line : lines_of(read_file(source_directory + "/docs/runbook.md"))) {
    if (line.starts_with("## ")) of_sections.push_back(anchor_of(line.substr(3)));
    const auto found = link.first(line);
    if (!found) continue;
    if (std::ranges::find(of_table, (*found)[1]) == of_table.end()) of_table.push_back((*found)[1]);
  }
  of_table.insert(of_table.begin(), "by-symptom");
  of_table.insert(of_table.end(), {"rotate-the-key", "put-recoveries-first"});
  CHECK(of_sections == of_table);
}

}  // namespace mailroom::test::runbook_test
