// The list of rights, a line for each role and kind of object, as GRANT writes them.

#include "schema/roles.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

#include "base/text.hpp"

namespace mailroom::schema {
namespace {

constexpr std::array<Role, 10> role_list{{
    {.name = "app", .task = "signs users up: inserts accounts"},
    {.name = "redeemer", .task = "redeems links and codes"},
    {.name = "producer", .task = "asks for mails, and cancels its own"},
    {.name = "submitter", .task = "asks for raw mails, whoever they are from"},
    // It acts as the roles of keys: of what it is a member of it must have no right before it has chosen.
    {.name = "submission",
     .task = "takes mails over HTTP, as the roles of keys",
     .attributes = "LOGIN NOINHERIT"},
    {.name = "collector", .task = "send, collect"},
    {.name = "reader", .task = "status, tail, audit, reconcile", .servers = "pg_monitor"},
    {.name = "teller", .task = "outcomes"},
    {.name = "bouncer", .task = "bounce"},
    {.name = "operator",
     .task = "all commands but migrate, action, adopt, key, simulate",
     .groups = "collector reader"},
}};

/// Whether init --roles grants it, or somebody by hand who needs it.
enum class Given { always, by_hand };

struct Right {
  std::string_view role;
  ObjectKind kind;
  std::string_view privileges;  ///< `SELECT, UPDATE (status)`
  std::string_view objects;
  Given given = Given::always;
};

constexpr auto of_table = ObjectKind::table;
constexpr auto of_sequence = ObjectKind::sequence;
constexpr auto of_function = ObjectKind::function;

constexpr std::string_view sequence_names =
    "tokens_id_seq mailroom_batches_id_seq mailroom_gaps_id_seq mailroom_operations_id_seq mailroom_schema_history_id_seq "
    "accounts_id_seq mailroom_messages_id_seq mailroom_outcomes_id_seq mailroom_bounces_id_seq";

constexpr std::array right_list{
    Right{"app", of_table, "INSERT (email, login), SELECT (id)", "accounts"},
    Right{"app", of_sequence, "USAGE", "accounts_id_seq"},
    // An application may keep more about its users in accounts.
    Right{"app", of_table, "SELECT, INSERT, UPDATE, DELETE", "accounts", Given::by_hand},
    Right{"app", of_function, "EXECUTE",
          "mailroom_bounced_addresses mailroom_unsubscribe mailroom_resubscribe mailroom_is_subscribed",
          Given::by_hand},

    Right{"redeemer", of_table, "SELECT, INSERT (account, action), UPDATE (consumed_at)", "tokens"},
    Right{"redeemer", of_sequence, "USAGE", "tokens_id_seq"},
    Right{"redeemer", of_table, "SELECT, UPDATE (status)", "accounts"},
    // For links without an account.
    Right{"redeemer", of_table, "SELECT (id, reference)", "mailroom_messages", Given::by_hand},

    Right{
        "producer", of_function, "EXECUTE",
        "mailroom_send mailroom_cancel mailroom_reschedule mailroom_message_status mailroom_email mailroom_emails "
        "mailroom_email_id mailroom_message_of mailroom_send_row mailroom_send_many"},
    // For INSERT, COPY and RETURNING id. Without them the functions remain.
    Right{
        "producer", of_table,
        "INSERT (action, account, recipients, cc, bcc, sender, reply_to, headers, template, locale, data, "
        "subject, text, html, profile, topic, send_after, expires_at, idempotency_key, reference, options, created_at, "
        "enqueued_by), SELECT (id)",
        "mailroom_messages"},
    Right{"producer", of_table, "INSERT", "mailroom_attachments"},
    // For ON CONFLICT with a condition.
    Right{"producer", of_table, "SELECT (owner, idempotency_key, replaced_at)", "mailroom_messages",
          Given::by_hand},
    // For raw mails by INSERT and COPY.
    Right{"producer", of_table, "INSERT (raw, return_path)", "mailroom_messages", Given::by_hand},
    Right{"producer", of_function, "EXECUTE",
          "mailroom_supabase_hook mailroom_bounced_addresses mailroom_unsubscribe mailroom_resubscribe "
          "mailroom_is_subscribed",
          Given::by_hand},

    Right{"submitter", of_function, "EXECUTE", "mailroom_submit mailroom_message_status"},
    // For the service of mailroom submission itself.
    Right{"submitter", of_table, "SELECT", "schema_migrations"},

    Right{"submission", of_function, "EXECUTE", "mailroom_find_key mailroom_use_keys mailroom_limit_of"},
    Right{"submission", of_table, "SELECT", "schema_migrations"},

    Right{"collector", of_table, "SELECT",
          "schema_migrations accounts tokens mailroom_queues mailroom_actions"},
    Right{"collector", of_table, "SELECT",
          "mailroom_messages mailroom_attachments mailroom_schedule mailroom_suppressions"},
    Right{"collector", of_table, "SELECT, UPDATE", "jobs mailroom_budgets"},
    Right{"collector", of_table, "SELECT, INSERT, UPDATE", "mailroom_batches mailroom_deliveries"},
    Right{"collector", of_table, "SELECT, INSERT, UPDATE, DELETE", "mailroom_gaps mailroom_sinks"},
    Right{"collector", of_table, "SELECT (at, queue, token, kind)", "mailroom_bounces"},
    // An identity column, as that of mailroom_gaps, needs none.
    Right{"collector", of_sequence, "SELECT", "tokens_id_seq"},
    Right{"collector", of_sequence, "USAGE", "mailroom_batches_id_seq"},
    Right{"collector", of_function, "EXECUTE",
          "mailroom_release mailroom_record_event mailroom_suppress_refused"},

    Right{
        "reader", of_table, "SELECT",
        "schema_migrations mailroom_schema_history accounts jobs mailroom_batches mailroom_gaps mailroom_deliveries "
        "mailroom_queues mailroom_budgets mailroom_sinks mailroom_operations mailroom_actions mailroom_schedule "
        "mailroom_suppressions mailroom_topics mailroom_limits"},
    // audit needs xmin for ids that are used again.
    Right{"reader", of_table,
          "SELECT (id, action, account, expires_at, consumed_at, created_at, message, recipient, home, "
          "traceparent, xmin)",
          "tokens"},
    Right{"reader", of_table, "SELECT (id)", "mailroom_outcomes"},
    Right{
        "reader", of_table,
        "SELECT (id, at, digest, place, source, queue, token, address, kind, reason, status, code, reply, remote, topic)",
        "mailroom_bounces"},
    Right{
        "reader", of_table,
        "SELECT (id, action, account, recipients, cc, bcc, template, locale, profile, topic, send_after, expires_at, "
        "idempotency_key, reference, created_at, enqueued_by, owner, replaced_at, cancelled_at, erased_at, home)",
        "mailroom_messages"},
    Right{"reader", of_table, "SELECT (message, place, name, content_type, content_id)",
          "mailroom_attachments"},
    Right{"reader", of_sequence, "SELECT", sequence_names},
    Right{"reader", of_function, "EXECUTE", "mailroom_message_status mailroom_email_id mailroom_message_of"},

    Right{"teller", of_table, "SELECT, UPDATE (attempts, not_before), DELETE", "mailroom_outcomes"},
    Right{"teller", of_table, "UPDATE (outcomes_since)", "mailroom_home"},
    Right{"teller", of_table, "SELECT (id, action, message, account, recipient)", "tokens"},
    Right{"teller", of_table, "SELECT (id, action, account, recipients, cc, bcc, reference, idempotency_key)",
          "mailroom_messages"},
    Right{"teller", of_table, "SELECT (id, email)", "accounts"},
    Right{"teller", of_table, "SELECT (queue, token, message_id)", "mailroom_deliveries"},
    Right{"teller", of_function, "EXECUTE", "mailroom_outcome_event"},
    Right{"teller", of_table, "SELECT", "schema_migrations"},

    Right{"bouncer", of_table, "SELECT", "schema_migrations"},
    Right{"bouncer", of_function, "EXECUTE",
          "mailroom_record_bounces mailroom_report mailroom_preferences mailroom_prefer"},

    Right{"operator", of_table, "UPDATE (status)", "accounts"},
    Right{"operator", of_table, "UPDATE (expires_at), DELETE", "tokens"},
    // For rewind-cursor --fix-sequence.
    Right{"operator", of_sequence, "UPDATE", sequence_names},
    Right{"operator", of_table, "UPDATE, DELETE", "mailroom_messages"},
    Right{
        "operator", of_function, "EXECUTE",
        "mailroom_send mailroom_cancel mailroom_reschedule mailroom_unsubscribe mailroom_resubscribe mailroom_is_subscribed mailroom_limit"},
    Right{"operator", of_table, "DELETE", "mailroom_batches mailroom_deliveries mailroom_attachments"},
    // For message export.
    Right{"operator", of_table, "SELECT", "mailroom_outcomes"},
    Right{"operator", of_table, "SELECT, UPDATE, DELETE", "mailroom_bounces"},
    Right{"operator", of_table, "INSERT, DELETE", "mailroom_suppressions jobs mailroom_budgets"},
    Right{"operator", of_table, "INSERT, UPDATE", "mailroom_queues mailroom_topics"},
    Right{"operator", of_table, "INSERT (kind, queue, account, details, actor, reason)",
          "mailroom_operations"},

    Right{"", of_table, "SELECT", "mailroom_home mailroom_owners"},
};

std::vector<std::string_view> words_in(std::string_view text, char separator = ' ') {
  std::vector<std::string_view> found;
  for (const auto word : split(text, separator)) {
    if (!trimmed(word).empty()) found.push_back(trimmed(word));
  }
  return found;
}

/// `SELECT, UPDATE (status)`, each on its own.
std::vector<std::string_view> clauses_of(std::string_view privileges) {
  std::vector<std::string_view> clauses;
  for (std::size_t begin = 0; begin < privileges.size();) {
    const auto open = std::min(privileges.find('(', begin), privileges.size());
    auto end = std::min(privileges.find(',', begin), privileges.size());
    if (open < end) end = privileges.find(')', open) + 1;
    clauses.push_back(trimmed(privileges.substr(begin, end - begin)));
    begin = std::min(privileges.find_first_not_of(", ", end), privileges.size());
  }
  return clauses;
}

/// Calls `use` with each grant of `role`.
template <typename Use>
void each_grant(std::string_view role, Given given, const Use& use) {
  for (const auto& right : right_list) {
    if (right.role != role || right.given != given) continue;
    for (const auto object : words_in(right.objects)) {
      for (const auto clause : clauses_of(right.privileges)) {
        const auto open = std::min(clause.find('('), clause.size());
        Grant grant{right.kind, std::string(object), std::string(trimmed(clause.substr(0, open))), {}};
        if (open < clause.size()) {
          for (const auto column : words_in(clause.substr(open + 1, clause.size() - open - 2), ','))
            grant.columns.emplace_back(column);
        }
        use(grant);
      }
    }
  }
}

void add_privileges(std::string_view role, Given given, Privileges& privileges) {
  each_grant(role, given, [&](const Grant& grant) {
    if (grant.columns.empty()) privileges.insert({grant.kind, grant.object, "", grant.privilege});
    for (const auto& column : grant.columns)
      privileges.insert({grant.kind, grant.object, column, grant.privilege});
  });
}

using PrivilegesByRole = std::map<std::string_view, Privileges>;

PrivilegesByRole all_given() {
  PrivilegesByRole all;
  for (const auto& role : role_list)
    add_privileges(role.name, Given::always, all[role.name]);
  add_privileges("", Given::always, all[""]);
  return all;
}

PrivilegesByRole all_allowed() {
  PrivilegesByRole all;
  for (const auto& role : role_list) {
    auto& own = all[role.name];
    add_privileges(role.name, Given::always, own);
    add_privileges(role.name, Given::by_hand, own);
    // Groups come before their members in the list.
    for (const auto group : words_in(role.groups))
      own.insert(all.at(group).begin(), all.at(group).end());
  }
  return all;
}

const char* grant_word(ObjectKind kind) {
  return kind == of_sequence ? "SEQUENCE " : kind == of_function ? "FUNCTION " : "";
}

}  // namespace

std::span<const Role> roles() {
  return role_list;
}

std::vector<Grant> grants_of(std::string_view name) {
  std::vector<Grant> grants;
  each_grant(name, Given::always, [&](const Grant& grant) { grants.push_back(grant); });
  return grants;
}

const Privileges& given_to(std::string_view name) {
  static const auto all = all_given();
  return all.at(name);
}

const Privileges& allowed_to(std::string_view name) {
  static const auto all = all_allowed();
  return all.at(name);
}

const Privileges& allowed_to_everyone() {
  return given_to("");
}

bool holds(const Privileges& held, const Privilege& privilege) {
  if (held.count(privilege) > 0) return true;
  auto whole = privilege;
  whole.column.clear();
  return held.count(whole) > 0;
}

std::vector<std::string> grant_statements(const std::string& schema, const std::string& prefix) {
  std::vector<std::string> statements;
  for (const auto& role : role_list) {
    const auto grantee = fmt::format("{}_{}", prefix, role.name);
    statements.push_back(fmt::format("GRANT USAGE ON SCHEMA {} TO {};", schema, grantee));
    for (const auto& right : right_list) {
      if (right.role != role.name || right.given != Given::always) continue;
      std::vector<std::string> objects;
      for (const auto object : words_in(right.objects))
        objects.push_back(fmt::format("{}.{}", schema, object));
      statements.push_back(fmt::format("GRANT {} ON {}{} TO {};", right.privileges, grant_word(right.kind),
                                       joined(objects, ", "), grantee));
    }
  }
  return statements;
}

}  // namespace mailroom::schema
