// Compares what a role holds with the list of roles, and words what is more.

#include "schema/undue_rights.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <span>

#include "base/text.hpp"

namespace mailroom::schema {
namespace {

using ObjectKey = std::pair<ObjectKind, std::string>;

/// What is held and not allowed.
Privileges beyond(const Privileges& held, const Privileges& allowed) {
  Privileges rest;
  for (const auto& privilege : held) {
    if (!holds(allowed, privilege) && !holds(allowed_to_everyone(), privilege)) rest.insert(privilege);
  }
  return rest;
}

/// Whether `held` is meant for a role of the list: what it is given, apart from what was forgotten.
bool is_most_of(const Privileges& held, const Privileges& given) {
  const auto has = [&](const Privilege& privilege) { return holds(held, privilege); };
  return 4 * std::ranges::count_if(given, has) >= 3 * std::ranges::ssize(given);
}

/// Whether it was given the column alone, as nobody is who was given every table.
bool holds_column(const Privileges& held, const char* object, const char* column, const char* name) {
  return held.count({ObjectKind::table, object, column, name}) > 0;
}

/// Whether somebody let it call what `role`, a producer or submitter, calls: who was given every function has
/// others.
bool calls_as(std::string_view role, const Privileges& held) {
  bool calls = false;
  for (const auto& privilege : held) {
    if (privilege.kind != ObjectKind::function) continue;
    if (!holds(allowed_to("producer"), privilege) && !holds(allowed_to("submitter"), privilege)) return false;
    // A reader has some of them, too.
    if (!holds(given_to("reader"), privilege)) calls = calls || holds(allowed_to(role), privilege);
  }
  return calls;
}

/// Whether somebody made `role` of it. Who redeems links without an account has nothing of accounts.
bool is_meant_as(std::string_view role, const Privileges& held) {
  return ((role == "producer" || role == "submitter") && calls_as(role, held)) ||
         (role == "producer" && holds_column(held, "mailroom_messages", "recipients", "INSERT")) ||
         (role == "redeemer" && holds_column(held, "tokens", "consumed_at", "UPDATE")) ||
         (role == "app" && holds_column(held, "accounts", "email", "INSERT"));
}

/// What roles of the list may have that `held` makes one of.
Privileges allowed_as_a_whole(const Privileges& held, const Privileges& also) {
  auto allowed = allowed_to("producer");
  allowed.insert(also.begin(), also.end());
  for (const auto& role : roles()) {
    if (!is_most_of(held, given_to(role.name)) && !is_meant_as(role.name, held)) continue;
    const auto& more = allowed_to(role.name);
    allowed.insert(more.begin(), more.end());
  }
  return allowed;
}

using Clauses = std::set<std::string>;

std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 3;
  if (names.size() <= shown + 1) return joined(names, ", ");
  return fmt::format("{} and {} more", joined(std::span(names).first(shown), ", "), names.size() - shown);
}

std::string all_of(const std::vector<std::string>& names) {
  return joined(names, ", ");
}

/// The privileges on each object: `INSERT`, `SELECT (id, email)`, the columns as `list` writes them.
template <typename List>
std::map<ObjectKey, Clauses> by_object(const Privileges& privileges, const List& list) {
  std::map<std::pair<ObjectKey, std::string>, std::vector<std::string>> columns;
  for (const auto& privilege : privileges)
    columns[{{privilege.kind, privilege.object}, privilege.name}].push_back(privilege.column);
  std::map<ObjectKey, Clauses> all;
  for (const auto& [key, names] : columns) {
    // That of the whole object comes first, and has those of its columns.
    const bool is_whole = names.front().empty();
    all[key.first].insert(is_whole ? key.second : fmt::format("{} ({})", key.second, list(names)));
  }
  return all;
}

/// The objects on which the same privileges are, by their kind and these.
std::map<ObjectKey, std::vector<std::string>> by_privileges(const std::map<ObjectKey, Clauses>& objects) {
  std::map<ObjectKey, std::vector<std::string>> all;
  for (const auto& [key, names] : objects)
    all[{key.first, joined(names, ", ")}].push_back(key.second);
  return all;
}

}  // namespace

Privileges undue_rights(const std::string& name, const Privileges& held, const Privileges& also) {
  if (name.empty()) return beyond(held, {});
  Privileges own;
  for (const auto& role : roles()) {
    if (!name.ends_with("_" + std::string(role.name)) && !is_meant_as(role.name, held)) continue;
    own.insert(allowed_to(role.name).begin(), allowed_to(role.name).end());
  }
  auto allowed = allowed_as_a_whole(held, also);
  allowed.insert(own.begin(), own.end());
  return beyond(held, beyond(held, allowed).empty() ? allowed : own);
}

std::string described(const Privileges& privileges) {
  std::vector<std::string> parts;
  for (const auto& [key, objects] : by_privileges(by_object(privileges, first_of)))
    parts.push_back(fmt::format("{} on {}", key.second, first_of(objects)));
  return joined(parts, "; ");
}

std::vector<std::string> revoke_statements(const Privileges& undue, const Privileges& held,
                                           const std::string& schema, const std::string& grantee) {
  const auto all = by_object(held, all_of);
  auto taken = by_object(undue, all_of);
  for (auto& [key, clauses] : taken) {
    if (clauses == all.at(key)) clauses = {"ALL"};
  }
  std::vector<std::string> statements;
  for (const auto& [key, objects] : by_privileges(taken)) {
    std::vector<std::string> names;
    for (const auto& object : objects)
      names.push_back(fmt::format("{}.{}", schema, object));
    const auto* word = key.first == ObjectKind::sequence   ? "SEQUENCE "
                       : key.first == ObjectKind::function ? "FUNCTION "
                                                           : "";
    statements.push_back(
        fmt::format("REVOKE {} ON {}{} FROM {} CASCADE;", key.second, word, joined(names, ", "), grantee));
  }
  return statements;
}

}  // namespace mailroom::schema
