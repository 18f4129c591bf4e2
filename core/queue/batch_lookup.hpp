// Batches as the database records them, found by token, id or time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/connection.hpp"
#include "selection/id_range.hpp"

namespace mailroom::queue {

/// A lease that ended without an acknowledgement; the next attempt took the batch over.
struct AbandonedAttempt {
  int attempt = 1;
  std::string claimed_by{};
  int collector = 0;
  std::string key{};
  Moment claimed_at{};
  Moment taken_over_at{};

  friend bool operator==(const AbandonedAttempt&, const AbandonedAttempt&) = default;
};

/// Numbers of skipped tokens, by reason.
struct SkipCounts {
  std::int64_t expired = 0;
  std::int64_t consumed = 0;
  std::int64_t wrong_status = 0;
  std::int64_t invalid = 0;

  std::int64_t total() const { return expired + consumed + wrong_status + invalid; }
  std::array<std::pair<std::string_view, std::int64_t>, 4> by_reason() const {
    return {
        {{"expired", expired}, {"consumed", consumed}, {"wrong status", wrong_status}, {"invalid", invalid}}};
  }
};

/// A batch as mailroom_batches records it.
struct BatchRecord {
  std::int64_t id = 0;
  std::string queue{};
  std::vector<selection::IdRange>
      tokens{};              ///< those of the requested tokens that it holds, emitted or skipped
  std::int64_t size = 0;     ///< how many tokens it holds in total
  std::string claimed_by{};  ///< program, user, host and process
  std::string key{};         ///< fingerprint of the key that signs its tokens; empty if it names none
  int collector = 0;         ///< pid of the backend that served it
  int attempts = 1;          ///< how often it was leased
  Moment claimed_at{};       ///< time of the last lease
  std::optional<Moment> emitted_at{};
  std::optional<Moment> dead_at{};
  int emitted = 0;
  SkipCounts skipped{};                           ///< by the claim or when the batch was written
  std::vector<selection::IdRange> skipped_ids{};  ///< of all its tokens, those skipped when it was written
  std::vector<AbandonedAttempt> abandoned{};      ///< earlier attempts, oldest first
  std::vector<selection::IdRange>
      of_others{};  ///< requested ids that belonged to other tokens then; not in `tokens`
  std::vector<selection::IdRange>
      unsure{};  ///< those of `tokens` that may have belonged to other tokens then

  bool is_open() const { return !emitted_at && !dead_at; }
  /// True if all requested tokens were skipped.
  bool is_skipped() const {
    return !tokens.empty() &&
           selection::count_common_ids(tokens, skipped_ids) == selection::count_ids(tokens);
  }
  /// True if some requested tokens were emitted and others skipped, or the record does not say which.
  bool is_mixed() const {
    if (!emitted_at || emitted >= size) return false;
    const bool is_recorded = emitted + selection::count_ids(skipped_ids) >= size;
    return !is_recorded || tokens.empty() ||
           (!is_skipped() && selection::count_common_ids(tokens, skipped_ids) > 0);
  }
  /// True if nothing was emitted or skipped: the row only records the state of the queue.
  bool is_state_only() const { return emitted_at && size == 0 && emitted == 0 && skipped.total() == 0; }
};

/// True if mailroom send claimed it, so that its tokens have outcomes.
inline bool is_by_sender(const BatchRecord& batch) {
  return batch.claimed_by.starts_with("mailroom send ") || batch.claimed_by.starts_with("mailroom send@");
}

/// `batch` as it was during `attempt`: leased and not acknowledged.
BatchRecord as_claimed(BatchRecord batch, const AbandonedAttempt& attempt);
/// `batch` as it was during its last attempt.
BatchRecord as_claimed(BatchRecord batch);

/// The time span in which batches that hold a token were first leased.
struct TokenSpan {
  std::int64_t token = 0;
  Moment since{};
  Moment until{};
  std::optional<Moment> made{};  ///< when the token was created, if known
};

/// Returns the span from an hour before the token was created (clocks differ) to an hour after it expired.
/// Later batches may hold the token, after a replay or a long transaction, but cannot emit it.
TokenSpan token_span(std::int64_t token, Moment created_at, Moment expires_at);

/// Returns, ordered by id, the batches that hold a token of `spans` and were first leased within its span,
/// and for each queue the batch whose cursor reached the token at any time. Reads only batches of those
/// times, however many others there are. An id may have belonged to another token: see BatchRecord.
std::vector<BatchRecord> find_batches(pqxx::transaction_base& transaction,
                                      const std::vector<TokenSpan>& spans);

/// Returns those of the batches that exist, in any order. `tokens` are all of a batch that were not skipped
/// when it was written.
std::vector<BatchRecord> find_batches(pqxx::transaction_base& transaction,
                                      const std::vector<std::int64_t>& ids);

/// Returns nullopt if there is no such batch.
std::optional<BatchRecord> find_batch(pqxx::transaction_base& transaction, std::int64_t id);

/// Returns batches and records of skipped tokens from `since` to before `until`, which have whole seconds:
/// the newest `limit`, newest first.
std::vector<BatchRecord> list_batches(pqxx::transaction_base& transaction, Moment since, Moment until,
                                      std::int64_t limit);

/// Returns the first batch or record of skipped tokens of a queue that was first leased at `since` or later,
/// was last leased at `claimed_since` or later, and whose cursor reached `token`.
std::optional<BatchRecord> find_first_claim(pqxx::transaction_base& transaction, const std::string& queue,
                                            Moment since, Moment claimed_since, std::int64_t token);

/// A period in which the token sequence was behind a cursor, so that ids up to `highest` were reused.
struct IdReuse {
  std::int64_t highest = 0;
  Moment until{};  ///< when the sequence was fixed
};

/// Returns the reuses that operators have fixed, and any that is not fixed yet. Runs within the caller's
/// transaction.
std::vector<IdReuse> find_id_reuses(pqxx::transaction_base& transaction);

/// Moves ids from `tokens` to `of_others` if the token was created after the batch was claimed: the id
/// belonged to another token then. Creation times have whole seconds, so a reused id is `unsure` if claim and
/// creation fall into one second, or if the token no longer exists.
void separate_reused_ids(const std::vector<TokenSpan>& spans, const std::vector<IdReuse>& reuses,
                         std::vector<BatchRecord>& batches);

}  // namespace mailroom::queue
