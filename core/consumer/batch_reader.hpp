// Large batches: tokens and their accounts, read in two sessions while the next batch is claimed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "consumer/queue_session.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// Reads a large batch in two statements, first its tokens, then their accounts, and joins them. A join on
/// the server looks up each account by itself, which takes the server twice the CPU time.
///
/// Keeps its memory for the next batch.
class BatchReader {
 public:
  using Each = std::function<void(const TokenRow&)>;
  using Work = std::function<void(Connection&)>;
  /// Does the work in two sessions at the same time, and returns when both have ended. Throws what one of
  /// them has thrown.
  using InTwoSessions = std::function<void(const Work&)>;

  /// Calls `each` for each token of the batch that has an account, in the order of their ids, and for none if
  /// the batch has been leased again since. The accounts are read after the tokens: a token that is consumed
  /// meanwhile may be skipped for the status of its account. Without `with_creation` the rows have no
  /// created_at. Accounts that are looked up one by one are read `in_two_sessions`, if there are two. Runs in
  /// autocommit mode; throws as Connection::copy_out().
  void read(Connection& connection, const Lease& lease, bool with_creation, const Each& each,
            const InTwoSessions& in_two_sessions = {});

  /// Reads the tokens of the next batch, so that read() has only its accounts left to read, unless a second
  /// has gone by: they may have been consumed or have expired. Another thread may call read() meanwhile, for
  /// the batch before.
  void read_ahead(Connection& connection, const Lease& lease, bool with_creation);
  /// Call before read(), when no read_ahead() runs: another one may run from then on.
  void advance();

 private:
  struct Text {
    std::size_t start;
    std::size_t size;
  };
  struct Token {
    TokenRow row;  ///< without its texts
    Text code;
  };
  struct Tokens {
    Lease lease{};  ///< of the batch whose tokens these are
    TimePoint read_at{};
    std::vector<Token> rows{};
    std::string texts{};
  };
  struct Account {
    std::int64_t id;
    Text email;
    Text login;
    bool allows_activation;
    bool allows_recovery;
  };
  struct Accounts {
    std::vector<Account> rows{};  ///< by ascending id
    std::string texts{};
  };

  static Text keep(std::string_view text, std::string& texts);
  template <typename Fields>
  static void keep_account(const Fields& fields, Accounts& accounts);
  static void read_tokens(Connection& connection, const Lease& lease, bool with_creation, Tokens& tokens);
  void read_accounts(Connection& connection, const Each& each, const InTwoSessions& in_two_sessions);
  /// In parts: each session reads the next one that neither has begun.
  void read_parts(const std::vector<std::int64_t>& ids, const InTwoSessions& in_two_sessions);
  /// Gives the tokens that come before the first one of an account above `last`.
  void give_up_to(std::int64_t last, const Each& each);
  const Account* find_account(std::int64_t id);

  Tokens tokens_;
  Tokens next_tokens_;
  Accounts accounts_;
  std::vector<Accounts> parts_;
  std::size_t next_row_ = 0;      ///< the first token that has not been given
  std::size_t near_account_ = 0;  ///< the account of the next token is often this one or the one after it
};

/// Finds the accounts with these ids, ascending: as a range if it holds few others, otherwise as a list.
std::string accounts_condition(const std::vector<std::int64_t>& ids);

}  // namespace mailroom
