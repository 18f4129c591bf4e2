// What an action is: a row of mailroom_actions, and the names by which people know it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "crypto/key_ring.hpp"
#include "db/connection.hpp"

namespace mailroom::queue {

/// What kind of mail a token of the queue is. Path, code and number never change: signatures and lines depend
/// on them.
struct Action {
  std::string name;              ///< `password_recovery`, as the database names it
  int number = 0;                ///< in a line of CSV
  std::string path{};            ///< begins what is signed; empty: no link, no secret
  bool has_code = false;         ///< the signature covers a code, too
  std::string account_status{};  ///< of an account whose tokens are due; empty: it needs no account
  std::optional<std::chrono::seconds> lifetime{};  ///< of its tokens; nullopt: they do not expire
  std::string template_name{};  ///< of a message that names none and has no content; empty for none
  bool security = false;        ///< such mail is sent after a complaint, too
  std::string producer{};       ///< the role that may ask for it; empty: every producer
  bool is_retired = false;      ///< new messages of it are refused

  bool operator==(const Action&) const = default;
};

/// `recovery` for `password_recovery`: what texts say, and what an operator may type. Otherwise the name.
std::string short_action_name(std::string_view name);

/// The actions of a database, or those that each has.
class Actions {
 public:
  Actions() = default;
  /// By number.
  explicit Actions(std::vector<Action> actions) : actions_(std::move(actions)) {}

  /// Those that every database has: rows of the migrations.
  static const Actions& built_in();
  /// Of them, that of the token that each new account gets.
  static const Action& of_sign_up() { return built_in().all()[0]; }
  /// And that with which an account chooses a new password.
  static const Action& of_recovery() { return built_in().all()[1]; }

  /// By number.
  const std::vector<Action>& all() const { return actions_; }
  /// Null without one of this name, as the database has it.
  const Action* find(std::string_view name) const;
  /// By its name or its short name.
  const Action* find_typed(std::string_view text) const;
  const Action* find_path(std::string_view path) const;
  /// Returns it, by its name or its short name. Throws Error(code) that says `problem`, such as `--action
  /// has`, with the names that there are, for another text.
  const Action& require(std::string_view text, const std::string& problem, ExitCode code) const;
  std::vector<std::string> names() const;
  /// Their short names, without those that are retired.
  std::vector<std::string> short_names() const;
  /// What their signatures cover, of those with a path.
  std::vector<crypto::SignedPath> signed_paths() const;

 private:
  std::vector<Action> actions_;
};

/// Signs a secret for an action with a path, and the code if the action has one.
crypto::TokenText sign_token(crypto::Hmac& hmac, const Action& action, const crypto::Secret& secret,
                             std::string_view code);

/// The actions as a session knows them.
class KnownActions {
 public:
  /// `connection` must outlive this.
  explicit KnownActions(db::Connection& connection) : connection_(connection) { refresh(); }

  /// Reads them again.
  void refresh();
  /// Reads them again for a name that is new. Throws Error(failed) if there is none of this name. Valid until
  /// refresh(), or as long as now() is kept: rows of one batch are read one after the other.
  const Action* require(std::string_view name);
  const std::shared_ptr<const Actions>& now() const { return actions_; }

 private:
  db::Connection& connection_;
  std::shared_ptr<const Actions> actions_;
  std::vector<std::shared_ptr<const Actions>> before_;  ///< since refresh()
};

/// The error for a token of an action that is not in the table.
Error unknown_action(std::string_view name);

/// Reads mailroom_actions.
Actions read_actions(db::Connection& connection);
Actions read_actions_within(pqxx::transaction_base& transaction);

}  // namespace mailroom::queue
