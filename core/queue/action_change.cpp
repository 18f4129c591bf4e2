// The rules for names and paths, which the database has too, and the calls of its functions.

#include "queue/action_change.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/pattern.hpp"
#include "base/printable.hpp"

namespace mailroom::queue {
namespace {

/// An interval as PostgreSQL reads it; nullopt for no end.
std::optional<std::string> interval_text(const Action& action) {
  if (!action.lifetime) return std::nullopt;
  return fmt::format("{} s", action.lifetime->count());
}

std::optional<std::string> optional_text(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

void require_name(const std::string& name, const Actions& actions) {
  static const Pattern form("[a-z][a-z0-9_]{0,61}");
  if (!form.matches(name)) {
    throw Error(ExitCode::usage, fmt::format("'{}' cannot name an action", shown_text(name)),
                "a name begins with a letter, and has at most 62 lower-case letters, digits and underscores");
  }
  if (const auto* other = actions.find_typed(name)) {
    throw Error(ExitCode::usage, fmt::format("the action {} exists", short_action_name(other->name)),
                other->name == name ? "mailroom action set changes it"
                                    : fmt::format("it is {} in the database", other->name));
  }
}

void require_path(const Action& action, const Actions& actions) {
  static const Pattern form("/[a-z0-9_/-]{1,62}");
  if (!form.matches(action.path)) {
    throw Error(ExitCode::usage, fmt::format("'{}' cannot be the path of an action", shown_text(action.path)),
                "a path is like /magic: a slash, then lower-case letters, digits, _, - and /");
  }
  if (const auto* other = actions.find_path(action.path)) {
    throw Error(ExitCode::usage,
                fmt::format("the path {} is that of {}", action.path, short_action_name(other->name)),
                "each action signs with a path of its own");
  }
}

}  // namespace

std::vector<ActionText> action_texts(const Action& action) {
  return {{"number", std::to_string(action.number)},
          {"path", text_or_none(action.path)},
          {"code", action.has_code ? "yes" : "no"},
          {"account status", text_or_none(action.account_status)},
          {"lifetime", action.lifetime ? format_duration(*action.lifetime) : "none"},
          {"template", text_or_none(action.template_name)},
          {"security", action.security ? "yes" : "no"},
          {"producer", text_or_none(action.producer)}};
}

void require_valid(const ActionChange& change, const Actions& actions) {
  if (!change.is_new) return;
  require_name(change.after.name, actions);
  if (!change.after.path.empty()) require_path(change.after, actions);
  if (change.after.has_code && change.after.path.empty())
    throw Error(ExitCode::usage, "an action with a code needs a path",
                "the signature of its link covers the code");
}

void require_role(db::Connection& connection, const std::string& producer) {
  if (producer.empty() || !connection.run("SELECT FROM pg_roles WHERE rolname = $1", producer).empty())
    return;
  throw Error(ExitCode::usage, fmt::format("--producer: there is no role {}", shown_text(producer)),
              "CREATE ROLE makes one");
}

void require_changeable(const Action& action, bool own_only) {
  const auto* built_in = Actions::built_in().find(action.name);
  if (built_in == nullptr || (built_in->path.empty() && !own_only)) return;
  throw Error(ExitCode::usage, fmt::format("the action {} is built in", short_action_name(action.name)),
              "mailroom action create makes one of your own");
}

std::vector<std::string> takers_of(const std::string& action, const QueueCatalogue& catalogue) {
  std::vector<std::string> names;
  for (const auto& queue : catalogue.queues) {
    if (queue.properties.takes(action)) names.push_back(queue.name);
  }
  return names;
}

void carry_out(db::Connection& connection, const ActionChange& change, const OperationAuthor& author) {
  const auto& after = change.after;
  connection.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    if (change.is_new) {
      db::Connection::execute(
          transaction,
          "SELECT mailroom_create_action($1, $2, $3, $4::account_status, $5::interval, $6, $7, $8::name)",
          after.name, optional_text(after.path), after.has_code, optional_text(after.account_status),
          interval_text(after), optional_text(after.template_name), after.security,
          optional_text(after.producer));
      return;
    }
    auto changes = nlohmann::json::object();
    const auto value_of = [](const std::optional<std::string>& text) {
      return text ? nlohmann::json(*text) : nlohmann::json(nullptr);
    };
    const auto& before = change.before;
    if (before.account_status != after.account_status)
      changes["account_status"] = value_of(optional_text(after.account_status));
    if (before.lifetime != after.lifetime) changes["lifetime"] = value_of(interval_text(after));
    if (before.template_name != after.template_name)
      changes["template"] = value_of(optional_text(after.template_name));
    if (before.security != after.security) changes["security"] = after.security;
    if (before.producer != after.producer) changes["producer"] = value_of(optional_text(after.producer));
    db::Connection::execute(transaction, "SELECT mailroom_set_action($1, $2::jsonb)", after.name,
                            plain_json(changes));
  });
}

void retire_action(db::Connection& connection, const std::string& action, const OperationAuthor& author) {
  connection.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    db::Connection::execute(transaction, "SELECT mailroom_retire_action($1)", action);
  });
}

}  // namespace mailroom::queue
