#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id_range.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A lease that ended without an acknowledgement, so that the next attempt took the batch over. Times are
/// microseconds since 1970.
struct AbandonedAttempt {
  int attempt = 1;
  std::string claimed_by{};
  int collector = 0;
  std::int64_t claimed_at = 0;
  std::int64_t taken_over_at = 0;

  friend bool operator==(const AbandonedAttempt&, const AbandonedAttempt&) = default;
};

/// A batch as mailroom_batches records it. Times are microseconds since 1970.
struct BatchRecord {
  std::int64_t id = 0;
  std::string queue{};
  std::vector<IdRange> tokens{};  ///< those that were asked for, left out or not
  std::int64_t size = 0;          ///< how many tokens it holds in all
  std::string claimed_by{};       ///< program, host and process
  int collector = 0;              ///< pid of the backend that served it
  int attempts = 1;               ///< how often it was handed out
  std::int64_t claimed_at = 0;    ///< the last time it was
  std::optional<std::int64_t> emitted_at{};
  std::optional<std::int64_t> set_aside_at{};
  int emitted = 0;
  int skipped_expired = 0;  ///< passed over, before the batch was made or when it was written; so the others
  int skipped_consumed = 0;
  int skipped_status = 0;
  int skipped_invalid = 0;
  std::vector<IdRange> left_out{};  ///< of all its tokens, those that were not handed on when it was written
  std::vector<AbandonedAttempt> abandoned{};  ///< the attempts before, oldest first
  std::vector<IdRange>
      of_others{};                ///< ids asked for that were other tokens' then, and so are not in `tokens`
  std::vector<IdRange> unsure{};  ///< of `tokens`, those that may have been other tokens' then

  int skipped() const { return skipped_expired + skipped_consumed + skipped_status + skipped_invalid; }
  bool is_open() const { return !emitted_at && !set_aside_at; }
  /// Of the tokens asked for: none was handed on.
  bool is_left_out() const {
    return !tokens.empty() && count_common_ids(tokens, left_out) == count_ids(tokens);
  }
  /// It is not so that all tokens asked for were handed on, or none.
  bool is_mixed() const {
    if (!emitted_at || emitted >= size) return false;
    const bool is_recorded = emitted + count_ids(left_out) >= size;
    return !is_recorded || tokens.empty() || (!is_left_out() && count_common_ids(tokens, left_out) > 0);
  }
  /// Nothing was handed on or passed over: the row only says where the queue stands since then.
  bool is_mere_state() const { return emitted_at && size == 0 && emitted == 0 && skipped() == 0; }
};

/// `batch` while `attempt` of it was under way: as handed out, and not acknowledged.
BatchRecord as_claimed(BatchRecord batch, const AbandonedAttempt& attempt);
/// The same of the attempt that its row tells of.
BatchRecord as_claimed(BatchRecord batch);

/// When batches that hold a token were first handed out, in seconds since 1970.
struct TokenSpan {
  std::int64_t token = 0;
  std::int64_t since = 0;
  std::int64_t until = 0;
  std::optional<std::int64_t> made{};  ///< when the token was created, if that is known
};

/// From an hour before the token was made (clocks differ) to an hour after it expired: later ones may hold
/// it, by a replay or a transaction that took longer than the token lived, but cannot hand it on.
TokenSpan token_span(std::int64_t token, std::int64_t created_at, std::int64_t expires_at);

/// The batches that hold one of the tokens of `spans` and were first handed out within them, by id; and of
/// each queue the one whose cursor reached the token, whenever that was. Reads the batches of those times
/// alone, however many there are before and after. An id may have been another token's: see BatchRecord.
std::vector<BatchRecord> find_batches(pqxx::transaction_base& transaction,
                                      const std::vector<TokenSpan>& spans);

std::optional<BatchRecord> find_batch(pqxx::transaction_base& transaction, std::int64_t id);

/// Batches, and records of tokens passed over, of `since` to before `until` (seconds since 1970); the newest
/// `limit`, newest first.
std::vector<BatchRecord> list_batches(pqxx::transaction_base& transaction, std::int64_t since,
                                      std::int64_t until, std::int64_t limit);

/// The id from which on batches were first handed out at `time` (seconds since 1970) or later.
std::int64_t first_batch_since(pqxx::transaction_base& transaction, std::int64_t time);

}  // namespace mailroom
