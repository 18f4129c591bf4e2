#pragma once

#include "bench/stage.hpp"

namespace mailroom::bench {

/// The databases that rows work on; each is made when first asked for.
///
/// Accounts have the ids from 1 on, without gaps; every third one is active and gets recovery tokens, the
/// others are provisioned and get activation tokens. All addresses are `user<id>@bench.example`.
std::int64_t account_count(const Stage& stage);

/// The id of the nth provisioned account, from 0 on.
constexpr std::int64_t provisioned_account(std::int64_t n) {
  return 3 * (n / 2) + 1 + n % 2;
}

/// A backlog of due tokens, behind `old_tokens` that have long expired or been consumed.
struct Backlog {
  std::string database;
  std::int64_t old_tokens = 0;
  std::int64_t due = 0;
};

Backlog plain_backlog(Stage& stage);    ///< 500,000 due
Backlog deep_backlog(Stage& stage);     ///< 500,000 due behind ten million old ones
Backlog expired_backlog(Stage& stage);  ///< 1,000 due behind a million that expired without being handed on

/// A database with accounts only, for what inserts tokens itself.
std::string make_live_database(Stage& stage, const std::string& name);

/// A million accounts with a token each under migration 0 alone, as the original system left them, and
/// nothing recorded.
std::string original_database(Stage& stage);

/// Forgets all batches; the next claim begins after `cursor`.
void place_cursor(Connection& connection, std::int64_t cursor);

}  // namespace mailroom::bench
