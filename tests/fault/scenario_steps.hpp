#pragma once

// The statements of scenarios, as applications, consumers and operators send them, with what each uses.

#include <fmt/format.h>
#include <string>

#include "fault/scenario.hpp"

namespace mailroom::test {

/// Transaction ids and ids of tokens, in the order in which they are drawn.
constexpr const char* drawn_ids = "ids";
/// What other sessions see.
constexpr const char* seen_rows = "rows";
/// What a budget allows, of all queues.
constexpr const char* taken_budget = "budget";

inline ScriptStep begin() {
  return {.name = "BEGIN", .sql = "BEGIN"};
}

inline ScriptStep commit() {
  return {.name = "COMMIT", .sql = "COMMIT", .uses = {{seen_rows, Use::adds}, {"locks", Use::writes}}};
}

inline std::string account(const std::string& login, const std::string& status = "provisioned") {
  return fmt::format("INSERT INTO accounts (email, login, status) VALUES ('{0}@test.example', '{0}', '{1}')",
                     login, status);
}

/// A token that an account has asked for, which is there already and active.
inline std::string recovery(const std::string& login) {
  return fmt::format(
      "INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM accounts WHERE login = '{}'",
      login);
}

/// In a transaction, or alone.
inline ScriptStep insert(const std::string& login, bool is_alone = false) {
  ScriptStep step{.name = "INSERT " + login,
                  .sql = account(login),
                  .uses = {{drawn_ids, Use::writes}},
                  .means = Means::inserts,
                  .subject = login};
  if (is_alone) step.uses.emplace(seen_rows, Use::adds);
  return step;
}

inline ScriptStep claim(const std::string& queue = "mailroom", int limit = 10) {
  return {.name = queue == "mailroom" ? "claims" : "claims of " + queue,
          .act = Act::claim,
          .uses = {{drawn_ids, Use::adds},
                   {seen_rows, Use::reads},
                   {"queue " + queue, Use::writes},
                   {"locks", Use::reads},
                   {taken_budget, Use::adds}},
          .queue = queue,
          .limit = limit};
}

/// A claim of a queue with a budget.
inline ScriptStep paced_claim(const std::string& queue = "mailroom", int limit = 10) {
  auto step = claim(queue, limit);
  step.uses[taken_budget] = Use::writes;
  return step;
}

/// A message to NAME@test.example.
inline std::string message(const std::string& name, const std::string& more = "") {
  return fmt::format(
      "SELECT mailroom_send(ARRAY['{0}@test.example'], subject => 'Hello', text => 'Hello', reference => '{0}'{1})",
      name, more);
}

/// A message whose time has come, and which is in the schedule.
inline std::string scheduled_message(const std::string& name) {
  return message(name, ", send_after => now() + interval '1 hour', idempotency_key => '" + name + "'") +
         "; UPDATE mailroom_messages SET send_after = now() WHERE reference = '" + name + "'";
}

inline ScriptStep cancel(const std::string& name, bool is_alone = false) {
  ScriptStep step{.name = "cancels " + name,
                  .sql = "SELECT mailroom_cancel(idempotency_key => '" + name + "')",
                  .uses = {{"locks", Use::writes}, {seen_rows, Use::reads}, {"message " + name, Use::writes}},
                  .means = Means::cancels,
                  .subject = name};
  if (is_alone) step.uses[seen_rows] = Use::writes;
  return step;
}

inline ScriptStep send_message(const std::string& name, const std::string& key,
                               const std::string& more = "") {
  return {.name = "sends " + name,
          .sql = message(name, ", idempotency_key => '" + key + "'" + more),
          .uses = {{drawn_ids, Use::writes}, {seen_rows, Use::writes}, {"locks", Use::writes}},
          .means = Means::inserts,
          .subject = name};
}

/// A mail as the submission service stores it.
inline ScriptStep submit(const std::string& name) {
  return {
      .name = "submits " + name,
      .sql = fmt::format(
          "SELECT is_known FROM mailroom_submit(ARRAY['s@test.example'], ARRAY['{0}@test.example'], "
          "ARRAY[convert_to(E'From: s@test.example\\r\\n\\r\\nHello\\r\\n', 'UTF8')], ARRAY['{0}'], ARRAY['{0}'])",
          name),
      .uses = {{drawn_ids, Use::writes}, {seen_rows, Use::writes}, {"locks", Use::writes}},
      .means = Means::inserts,
      .subject = name};
}

inline ScriptStep release() {
  return {.name = "releases",
          .sql = "SELECT released FROM mailroom_release(1000)",
          .uses = {{drawn_ids, Use::writes}, {seen_rows, Use::writes}, {"locks", Use::writes}}};
}

}  // namespace mailroom::test
