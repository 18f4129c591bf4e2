// Reads the CREATE statements of the migrations. What a missing trigger leads to is listed by hand.

#include "schema/schema_objects.hpp"

#include <array>
#include <fmt/format.h>
#include <sstream>
#include <string_view>

#include "base/pattern.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "schema/function_set.hpp"
#include "schema/migration.hpp"
#include "schema/statements.hpp"

namespace mailroom::schema {
namespace {

constexpr std::array<ExpectedTrigger, 25> expected_trigger_list{{
    {"before_token_insert", "tokens", true, "a token gets no id, so every sign-up and every message fails"},
    {"after_token_inserted", "tokens", false, "collectors see a new token only at their next poll"},
    {"after_account_insert", "accounts", true, "a new account gets no activation token"},
    {"before_account_insert", "accounts", false,
     "an address with a control character is accepted, and its tokens are skipped"},
    {"before_account_address_change", "accounts", false,
     "an address with a control character is accepted, and its tokens are skipped"},
    {"before_account_status_change", "accounts", true,
     "status changes get no timestamp, and ending a suspension can activate an account"},
    {"after_token_consumed", "tokens", true, "consuming an activation token does not activate the account"},
    {"after_account_suspension", "accounts", false, "suspensions are not recorded"},
    {"before_delivery_outcome", "mailroom_deliveries", false,
     "another attempt overwrites what became of the one before"},
    {"after_message_insert", "mailroom_messages", true, "a message gets no token, and is never sent"},
    {"before_message_rescheduled", "mailroom_messages", false,
     "a message whose time is changed leaves at the old one"},
    {"before_message_insert", "mailroom_messages", true,
     "a message can name another role as the one that asked for it"},
    {"before_keyed_message", "mailroom_messages", false,
     "the idempotency key of a message that was never sent stays taken"},
    {"before_message_changed", "mailroom_messages", false,
     "a change of a message that waits is mailed, and each attempt may be another mail"},
    {"before_attachment_insert", "mailroom_attachments", true,
     "a role can attach files to the messages of others"},
    {"before_attachment_checked", "mailroom_attachments", false,
     "a file that no mail can have is refused when the mail is composed"},
    {"before_attachment_changed", "mailroom_attachments", false,
     "a change of a file that waits is mailed, and each attempt may be another mail"},
    {"after_attachment_insert", "mailroom_attachments", false,
     "a message can have more attachments than a mail takes, and is refused when it is composed"},
    {"after_message_delete", "mailroom_messages", false, "the attachments of a deleted message stay"},
    {"after_message_truncate", "mailroom_messages", true,
     "after TRUNCATE … RESTART IDENTITY a message gets the attachments of another"},
    {"after_delivery_insert", "mailroom_deliveries", false, "applications are not told of outcomes"},
    {"after_delivery_update", "mailroom_deliveries", false, "applications are not told of outcomes"},
    {"after_batch_passed", "mailroom_batches", false,
     "applications are not told of tokens that ended before a claim"},
    {"after_operation", "mailroom_operations", false,
     "applications are not told of tokens that an operator kept from being emitted"},
    {"after_account_delete", "accounts", false, "the messages of a deleted account stay"},
}};

/// What `text` has in its first parentheses, separated by the commas that are in no further ones.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  int depth = 0;
  for (const char c : text) {
    if (c == ')' && --depth == 0) break;
    if (c == ',' && depth == 1) {
      parts.emplace_back();
    } else if (depth > 0) {
      parts.back() += c;
    }
    if (c == '(' && ++depth == 1) parts.emplace_back();
  }
  return parts;
}

/// Adds the table that `text` creates, its columns and their constraints with an index.
void add_table(const std::string& text, const std::string& table, const std::string& migration,
               ExpectedObjects& objects) {
  objects[{ObjectKind::table, table}] = {.migration = migration};
  const auto add_constraint = [&](const std::string& name, const std::string& rule) {
    objects[{ObjectKind::constraint, name}] = {
        .table = table,
        .migration = migration,
        .statement = fmt::format("ALTER TABLE @.{} ADD CONSTRAINT {} {};", table, name, rule)};
  };
  for (const auto& part : parts_of(text)) {
    std::string column;
    std::istringstream(part) >> column;
    // A constraint of the whole table begins with a keyword, which the migrations write in upper case.
    if (column == "PRIMARY") add_constraint(table + "_pkey", std::string(trimmed(part)));
    if (column.empty() || std::isupper(static_cast<unsigned char>(column.front())) != 0) continue;
    objects[{ObjectKind::column, table + "." + column}] = {.table = table, .migration = migration};
    if (part.find(" PRIMARY KEY") != std::string::npos)
      add_constraint(table + "_pkey", fmt::format("PRIMARY KEY ({})", column));
    if (part.find(" UNIQUE") != std::string::npos)
      add_constraint(fmt::format("{}_{}_key", table, column), fmt::format("UNIQUE ({})", column));
  }
}

/// Adds the column that `text` adds to a table, if it does.
void add_column(const std::string& text, const std::string& migration, ExpectedObjects& objects) {
  static const Pattern form("ALTER TABLE ([a-z_]+) ADD COLUMN ([a-z_]+) ");
  const auto match = form.at_start(text);
  if (!match) return;
  const auto& table = (*match)[1];
  objects[{ObjectKind::column, table + "." + (*match)[2]}] = {.table = table, .migration = migration};
}

/// Adds what `text`, a statement on one line, creates.
void add_created(const std::string& text, const std::string& migration, ExpectedObjects& objects) {
  static const Pattern form(
      "CREATE (?:OR REPLACE |UNIQUE )?(TABLE|INDEX|FUNCTION|TRIGGER) (CONCURRENTLY IF NOT EXISTS )?([a-z_0-9]+)"
      "(?: ON ([a-z_]+))?[ (]");
  const auto match = form.at_start(text);
  if (!match) return add_column(text, migration, objects);
  const auto& kind = (*match)[1];
  const auto& name = (*match)[3];
  if (kind == "TABLE") {
    add_table(text, name, migration, objects);
  } else if (kind == "FUNCTION") {
    objects[{ObjectKind::function, name}] = {.migration = migration};
  } else if (kind == "TRIGGER") {
    static const Pattern names(
        " ON (?=[a-z])| EXECUTE FUNCTION (?=[a-z])| <> (?=mailroom_)|'(?=mailroom_[a-z]+'::regclass)");
    objects[{ObjectKind::trigger, name}] = {.migration = migration,
                                            .statement = names.replaced(text, "$&@.") + ";"};
  } else {
    constexpr std::string_view word = "INDEX ";
    const auto begin = text.find(word) + word.size();
    const auto rest = Pattern(" ON (?=[a-z])").replaced(text.substr(begin), " ON @.");
    objects[{ObjectKind::index, name}] = {
        .table = (*match)[4],
        .migration = migration,
        .statement =
            fmt::format("{}{}{};", text.substr(0, begin), (*match)[2].empty() ? "CONCURRENTLY " : "", rest)};
  }
}

/// The names after CREATE TABLE at the beginning of a line. A regular expression would take longer than the
/// rest of a short command.
void add_created_tables(std::string_view sql, std::vector<std::string>& tables) {
  constexpr std::string_view words = "CREATE TABLE ";
  for (auto at = sql.find(words); at != std::string_view::npos; at = sql.find(words, at + words.size())) {
    const auto rest = sql.substr(at + words.size());
    const auto name = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
    if ((at == 0 || sql[at - 1] == '\n') && !name.empty()) tables.emplace_back(name);
  }
}

std::vector<std::string> created_tables() {
  std::vector<std::string> tables{"schema_migrations", "mailroom_schema_history"};
  for (const auto& migration : embedded_migrations())
    add_created_tables(migration.up, tables);
  return tables;
}

}  // namespace

ExpectedObjects read_expected_objects(const std::vector<Migration>& migrations) {
  ExpectedObjects objects;
  for (const auto& migration : migrations) {
    for (const auto& statement : split_statements(migration.up))
      add_created(shortened_statement(statement.text, std::string::npos), migration.title(), objects);
  }
  return objects;
}

const ExpectedObjects& expected_objects() {
  static const auto objects = [] {
    auto all = read_expected_objects(embedded_migrations());
    for (const auto& [name, file] : embedded_functions().made_in)
      all[{ObjectKind::function, name}] = {.migration = file};
    return all;
  }();
  return objects;
}

std::span<const ExpectedTrigger> expected_triggers() {
  return expected_trigger_list;
}

const std::vector<std::string>& mailroom_tables() {
  static const auto tables = created_tables();
  return tables;
}

const std::vector<std::string>& mailroom_functions() {
  static const auto functions = [] {
    // Its body is drawn for each database, so that no file has it.
    std::vector<std::string> names{"mailroom_home_number"};
    for (const auto& [key, object] : expected_objects()) {
      if (key.kind == ObjectKind::function) names.push_back(key.name);
    }
    return names;
  }();
  return functions;
}

const std::vector<std::string>& tables_of_claims() {
  static const std::vector<std::string> tables{"accounts",
                                               "tokens",
                                               "jobs",
                                               "mailroom_queues",
                                               "mailroom_budgets",
                                               "mailroom_batches",
                                               "mailroom_gaps",
                                               "mailroom_deliveries",
                                               "mailroom_actions",
                                               "mailroom_messages",
                                               "mailroom_home"};
  return tables;
}

const std::vector<std::string>& tables_of_consumers() {
  static const auto tables = [] {
    auto all = tables_of_claims();
    all.emplace_back("mailroom_sinks");
    all.emplace_back("mailroom_schedule");
    return all;
  }();
  return tables;
}

HiddenRows hidden_rows(db::Connection& connection, const std::vector<std::string>& tables) {
  // A policy does not help: collectors set row_security to off, and then each policy is an error.
  const auto row = connection.run(R"(
SELECT coalesce(string_agg(c.relname, ', ' ORDER BY c.relname), '') AS tables,
  format('ALTER ROLE %I BYPASSRLS;', current_user) AS fix,
  CASE WHEN count(*) < 3 THEN
    coalesce(string_agg(format('ALTER TABLE %I.%I DISABLE ROW LEVEL SECURITY;', current_schema(), c.relname), ' '
                        ORDER BY c.relname), '')
  ELSE '' END AS owners_fix
FROM pg_class c
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'p')
  AND c.relname = ANY ($1::text[]) AND row_security_active(c.oid))",
                                  db::array_text(tables))[0];
  return {.tables = row.text("tables"), .fix = row.text("fix"), .owners_fix = row.text("owners_fix")};
}

void require_all_rows(db::Connection& connection, const std::vector<std::string>& tables) {
  const auto hidden = hidden_rows(connection, tables);
  if (hidden.tables.empty()) return;
  auto hint = "a policy does not help; as a superuser: " + hidden.fix;
  if (!hidden.owners_fix.empty()) hint += " or as the owner of the tables: " + hidden.owners_fix;
  throw Error(ExitCode::failed,
              fmt::format("row security hides rows of {}, so results would be incomplete", hidden.tables),
              hint);
}

}  // namespace mailroom::schema
