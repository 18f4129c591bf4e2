// What nobody will ever be mailed for: messages and accounts whose trigger did not fire, so that they have no
// token, and tokens of an action that no queue takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::status {

struct LostMessages {
  bool is_known = true;       ///< false: the role may not read messages, as roles of before there were any
  std::int64_t messages = 0;  ///< that could be sent
  std::int64_t later = 0;     ///< of these, for a time to come
  std::int64_t unfit = 0;     ///< that the trigger would have refused
  std::vector<std::int64_t> newest{};        ///< the ids of at most 10 of `messages`, newest first
  std::vector<std::int64_t> newest_unfit{};  ///< likewise, of `unfit`

  std::int64_t total() const { return messages + unfit; }
};

/// Those that were asked for from `since` to before `until`, within the caller's transaction.
LostMessages read_lost_messages(pqxx::transaction_base& transaction, Moment since, Moment until);

/// Those of the last day, of the newest 10,000 messages: it costs the same however many there are. Not known
/// where row security hides messages.
LostMessages read_newest_lost_messages(pqxx::transaction_base& transaction);

/// The accounts of the last day that wait for their activation and have no token, of the newest 10,000; 0 if
/// the role may not read accounts.
std::int64_t count_accounts_without_token(pqxx::transaction_base& transaction);

/// Makes the tokens of those of the last day that could be sent, and puts the later ones into the schedule;
/// `schema` is quoted.
std::vector<Fix> issue_lost_messages(const LostMessages& lost, const std::string& schema);

/// The statement that makes the tokens of all accounts of the last day that have none.
Fix issue_account_tokens(const std::string& schema);

/// `message 7`, or `messages 9, 8, 7 and 12 others`: those that `ids` are the newest of.
std::string messages_text(const std::vector<std::int64_t>& ids, std::int64_t total);

/// An action whose tokens no queue takes.
struct UntakenAction {
  std::string name;  ///< as people type it: `recovery`
  /// That are due, among the newest 10,000; since `dropped_at`, if that is known. Otherwise a queue may have
  /// taken them.
  std::int64_t tokens = 0;
  std::optional<Moment>
      dropped_at{};           ///< when the last queue was dropped that took it; nullopt if that is not known
  bool has_namesake = false;  ///< a queue of this name takes other actions
};

/// Within the caller's transaction. Without the action of messages while nobody asks for any.
std::vector<UntakenAction> read_untaken_actions(pqxx::transaction_base& transaction);

}  // namespace mailroom::status
