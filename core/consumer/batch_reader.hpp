#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

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
  using Statement = std::function<void(Connection&)>;
  /// Runs the two at the same time, each in a session of its own, and returns when both have ended. Throws
  /// what one of them has thrown.
  using InTwoSessions = std::function<void(const Statement&, const Statement&)>;

  /// Calls `each` for each token of the batch that has an account, in the order of their ids, and for none if
  /// the batch has been leased again since. The accounts are read after the tokens: a token that is consumed
  /// meanwhile may be skipped for the status of its account. Without `with_creation` the rows have no
  /// created_at. Accounts that are looked up one by one are read `in_two_sessions`, if there are two. Runs in
  /// autocommit mode; throws as Connection::copy_out().
  void read(Connection& connection, const Lease& lease, bool with_creation, const Each& each,
            const InTwoSessions& in_two_sessions = {});

 private:
  struct Text {
    std::size_t start;
    std::size_t size;
  };
  struct Token {
    TokenRow row;  ///< without its texts
    Text code;
  };
  struct Account {
    std::int64_t id;
    Text email;
    Text login;
    bool allows_activation;
    bool allows_recovery;
  };

  static Text keep(std::string_view text, std::string& texts);
  template <typename Fields>
  static void keep_account(const Fields& fields, std::vector<Account>& accounts, std::string& texts);
  void read_tokens(Connection& connection, const Lease& lease, bool with_creation);
  void read_accounts(Connection& connection, const Each& each, const InTwoSessions& in_two_sessions);
  /// The first half of `ids` in one session, the second in another.
  void read_halves(const std::vector<std::int64_t>& ids, const InTwoSessions& in_two_sessions);
  /// Gives the tokens that come before the first one of an account above `last`.
  void give_up_to(std::int64_t last, const Each& each);
  const Account* find_account(std::int64_t id);
  std::string_view view(Text text) const { return std::string_view(texts_).substr(text.start, text.size); }

  std::vector<Token> tokens_;
  std::vector<Account> accounts_;  ///< by ascending id
  std::string texts_;
  std::vector<Account> second_accounts_;  ///< what the second session reads, and its texts
  std::string second_texts_;
  std::size_t next_token_ = 0;    ///< the first one that has not been given
  std::size_t near_account_ = 0;  ///< the account of the next token is often this one or the one after it
};

/// Finds the accounts with these ids, ascending: as a range if it holds few others, otherwise as a list.
std::string accounts_condition(const std::vector<std::int64_t>& ids);

}  // namespace mailroom
