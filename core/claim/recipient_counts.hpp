// How many mails the recipients of a batch were sent lately, for the limit of a sender.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "claim/queue_session.hpp"
#include "config/rate.hpp"
#include "db/connection.hpp"

namespace mailroom::claim {

/// Counts mails by the address that they went to, whatever asked for them: tokens of accounts, and messages
/// to one or several recipients. A mail that may have been accepted counts, and a token does not count
/// itself.
class RecipientCounts {
 public:
  /// Counts the mails of `queue` to the address of each token in the period of `limit`, at most as many as
  /// that allows, in place of those that it has.
  void read(db::Connection& connection, const std::string& queue, const config::Rate& limit,
            const std::vector<TokenRow>& tokens);
  /// Sets what the row of one of the tokens takes from it. The view is valid until the next read().
  void set(TokenRow& token) const;

 private:
  struct Count {
    std::string_view counted_as;
    int mailed = 0;
  };

  db::Rows rows_;
  std::map<std::int64_t, Count> counts_;  ///< by token
};

}  // namespace mailroom::claim
