// The rows that every database has, and look-ups, which are linear: an action is a kind of mail, of which
// there are few.

#include "queue/action.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"

namespace mailroom::queue {
namespace {

constexpr std::chrono::minutes link_lifetime{15};
constexpr std::chrono::hours message_lifetime{72};

constexpr const char* actions_sql = R"(
SELECT action, number, path, has_code, account_status, extract(epoch FROM lifetime)::bigint AS lifetime, template, security, producer,
  retired_at IS NOT NULL AS is_retired
FROM mailroom_actions ORDER BY number)";

Actions read_rows(const db::Rows& rows) {
  std::vector<Action> actions;
  for (const auto& row : rows) {
    // The text of a null is empty.
    actions.push_back({.name = row.text("action"),
                       .number = row.number<int>("number"),
                       .path = row.text("path"),
                       .has_code = row.flag("has_code"),
                       .account_status = row.text("account_status"),
                       .lifetime = {},
                       .template_name = row.text("template"),
                       .security = row.flag("security"),
                       .producer = row.text("producer"),
                       .is_retired = row.flag("is_retired")});
    if (const auto lifetime = row.optional<std::int64_t>("lifetime"))
      actions.back().lifetime = std::chrono::seconds(*lifetime);
  }
  return Actions(std::move(actions));
}

template <typename Same>
const Action* find_first(const std::vector<Action>& actions, const Same& same) {
  const auto found = std::find_if(actions.begin(), actions.end(), same);
  return found == actions.end() ? nullptr : &*found;
}

}  // namespace

const Actions& Actions::built_in() {
  static const Actions actions({{.name = "activation",
                                 .number = 1,
                                 .path = "/activate",
                                 .account_status = "provisioned",
                                 .lifetime = link_lifetime,
                                 .template_name = "activation",
                                 .security = true},
                                {.name = "password_recovery",
                                 .number = 2,
                                 .path = "/recover",
                                 .has_code = true,
                                 .account_status = "active",
                                 .lifetime = link_lifetime,
                                 .template_name = "recovery",
                                 .security = true},
                                {.name = "message", .number = 3, .lifetime = message_lifetime}});
  return actions;
}

std::string short_action_name(std::string_view name) {
  const auto* action = Actions::built_in().find(name);
  return action == nullptr || action->template_name.empty() ? std::string(name) : action->template_name;
}

const Action* Actions::find(std::string_view name) const {
  return find_first(actions_, [&](const Action& action) { return action.name == name; });
}

const Action* Actions::find_typed(std::string_view text) const {
  if (const auto* action = find(text)) return action;
  return find_first(actions_, [&](const Action& action) { return short_action_name(action.name) == text; });
}

const Action* Actions::find_path(std::string_view path) const {
  return find_first(actions_, [&](const Action& action) { return action.path == path; });
}

const Action& Actions::require(std::string_view text, const std::string& problem, ExitCode code) const {
  if (const auto* action = find_typed(text)) return *action;
  const auto names = short_names();
  const auto meant = nearest_word(text, names);
  throw Error(code, fmt::format("{} an unknown action '{}'", problem, shown_text(text)),
              meant.empty() ? fmt::format("actions: {}", joined(names, ", ")) : "did you mean: " + meant);
}

std::vector<std::string> Actions::names() const {
  std::vector<std::string> names;
  for (const auto& action : actions_)
    names.push_back(action.name);
  return names;
}

std::vector<std::string> Actions::short_names() const {
  std::vector<std::string> names;
  for (const auto& action : actions_) {
    if (!action.is_retired) names.push_back(short_action_name(action.name));
  }
  return names;
}

std::vector<crypto::SignedPath> Actions::signed_paths() const {
  std::vector<crypto::SignedPath> paths;
  for (const auto& action : actions_) {
    if (!action.path.empty()) paths.push_back({.path = action.path, .has_code = action.has_code});
  }
  return paths;
}

crypto::TokenText sign_token(crypto::Hmac& hmac, const Action& action, const crypto::Secret& secret,
                             std::string_view code) {
  return crypto::sign_token(hmac, action.path, secret, action.has_code ? code : std::string_view());
}

void KnownActions::refresh() {
  before_.clear();
  actions_ = std::make_shared<const Actions>(read_actions(connection_));
}

const Action* KnownActions::require(std::string_view name) {
  if (const auto* action = actions_->find(name)) return action;
  before_.push_back(std::exchange(actions_, std::make_shared<const Actions>(read_actions(connection_))));
  if (const auto* action = actions_->find(name)) return action;
  throw unknown_action(name);
}

Error unknown_action(std::string_view name) {
  return {
      ExitCode::failed,
      fmt::format("a token has the action \"{}\", which mailroom_actions does not have", shown_text(name)),
      "mailroom migrate verify says what else differs"};
}

Actions read_actions(db::Connection& connection) {
  return read_rows(connection.run(actions_sql));
}

Actions read_actions_within(pqxx::transaction_base& transaction) {
  return read_rows(db::Connection::execute(transaction, actions_sql));
}

}  // namespace mailroom::queue
