#pragma once

#include "bench/stage.hpp"

namespace mailroom::bench {

/// The databases that rows work on; each is created on first use.
///
/// Account ids start at 1 and have no gaps. Every third account is active and gets recovery tokens; the
/// others are provisioned and get activation tokens. All addresses are `user<id>@bench.example`.
std::int64_t account_count(const Stage& stage);

/// The id of the nth provisioned account, counted from 0.
constexpr std::int64_t provisioned_account(std::int64_t n) {
  return 3 * (n / 2) + 1 + n % 2;
}

/// A backlog of due tokens with higher ids than `old_tokens`, which have long expired or been consumed.
struct Backlog {
  std::string database;
  std::int64_t old_tokens = 0;
  std::int64_t due = 0;
};

Backlog plain_backlog(Stage& stage);      ///< 500,000 due, in order of sign-up
Backlog scattered_backlog(Stage& stage);  ///< 500,000 due, accounts in scattered order
Backlog deep_backlog(Stage& stage);       ///< 500,000 due after ten million old tokens
Backlog expired_backlog(Stage& stage);    ///< 1,000 due after a million that expired unemitted
Backlog mixed_backlog(Stage& stage);      ///< 500,000 recoveries, each after an activation; all due
Backlog others_backlog(Stage& stage);     ///< 1,000 recoveries after a million activations, all due

/// A database with accounts only, for rows that insert tokens themselves.
std::string make_live_database(Stage& stage, const std::string& name);

/// A million accounts with one token each under migration 0 alone, without bookkeeping, as the original
/// system left them.
std::string original_database(Stage& stage);

/// Deletes all tokens, with what is known of them.
void clear_queue(Stage& stage, const std::string& database);

/// The backend of a collector or sender that waits for work there, which holds a collector's lock; 0 for
/// none.
int collector_backend(Stage& stage, const std::string& database);
inline bool has_collector(Stage& stage, const std::string& database) {
  return collector_backend(stage, database) != 0;
}

/// Deletes all batches; the next claim starts after `cursor`.
void place_cursor(db::Connection& connection, std::int64_t cursor);

}  // namespace mailroom::bench
