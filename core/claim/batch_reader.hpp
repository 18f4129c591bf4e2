// Large batches: their tokens and their accounts are read by two statements, and joined here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "claim/message_rows.hpp"
#include "claim/queue_session.hpp"
#include "db/connection.hpp"

namespace mailroom::claim {

/// A text within a string that holds many.
struct TextSpan {
  std::size_t start;
  std::size_t size;
};

/// The tokens of a large batch, without their accounts.
struct BatchTokens {
  struct Token {
    TokenRow row;  ///< without its texts
    TextSpan code;
  };

  Lease lease{};  ///< of the batch whose tokens these are
  TimePoint read_at{};
  bool has_messages = false;
  std::shared_ptr<const queue::Actions> actions{};  ///< to which the rows point
  std::vector<Token> rows{};
  std::string texts{};
};

/// What to read of the tokens of a large batch.
struct TokenReading {
  bool with_creation = false;                       ///< otherwise they have no created_at
  bool has_messages = false;                        ///< the batch has some
  std::shared_ptr<const queue::Actions> actions{};  ///< that are known
};

/// Reads the tokens of the batch of `lease`; none if it has been leased again since. Reads the actions again
/// for one that is new. If `ahead` are its tokens, returns these, unless they were read over a second ago:
/// they may have been consumed or have expired. Otherwise uses the memory of `ahead`. Runs in autocommit
/// mode; throws as Connection::run_prepared().
BatchTokens read_tokens(db::Connection& connection, const Lease& lease, const TokenReading& reading,
                        BatchTokens ahead = {});

/// Reads the accounts and messages of a large batch, and joins its tokens with them. A join on the server
/// looks up each account by itself, which takes the server twice the CPU time.
///
/// Keeps its memory for the next batch.
class BatchReader {
 public:
  using Each = std::function<void(const TokenRow&)>;
  using Work = std::function<void(db::Connection&)>;
  /// Does the work in two sessions at the same time, and returns when both have ended. Throws what one of
  /// them has thrown.
  using InTwoSessions = std::function<void(const Work&)>;

  /// Calls `each` for each token whose account exists, or that has none, in the order of the tokens, and uses
  /// the tokens up: only their memory is left. The accounts are read after the tokens: a token that is
  /// consumed meanwhile may be skipped for the status of its account. Accounts that are looked up one by one
  /// are read `in_two_sessions`, if there are two and it takes long. Runs in autocommit mode; throws as
  /// Connection::run_prepared().
  void join(db::Connection& connection, BatchTokens& tokens, const Each& each,
            const InTwoSessions& in_two_sessions = {});

 private:
  struct Account {
    std::int64_t id;
    TextSpan email;
    TextSpan login;
    TextSpan status;
  };
  struct Accounts {
    std::vector<Account> rows{};  ///< by ascending id
    std::string texts{};

    void clear();
    void add(const db::Row& row);
  };

  /// In parts: each session reads the next one that neither has begun.
  void read_parts(const std::vector<std::int64_t>& ids, const InTwoSessions& in_two_sessions);
  /// Calls `each` for the tokens, with their accounts and messages.
  void join_rows(db::Connection& connection, BatchTokens& tokens, const Each& each);
  /// Sets what the row takes from its account. False if that has been deleted.
  bool set_account(TokenRow& row);
  const Account* find_account(std::int64_t id);

  Accounts accounts_;
  std::vector<Accounts> parts_;
  MessageReader messages_;
  std::size_t near_account_ = 0;  ///< the account of the next token is often this one or the one after it
};

/// How long tokens that were read ahead are used: they may be consumed or expire, and the reader of lines may
/// be slow in between.
constexpr std::chrono::seconds longest_ahead{1};

/// True if the accounts with these ids, ascending, are read as a range: it holds few others.
bool is_range(const std::vector<std::int64_t>& ids);

}  // namespace mailroom::claim
