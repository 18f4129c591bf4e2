// Tells tokens with the same id apart, after a sequence that was behind has given ids twice.
#pragma once

#include <cstdint>
#include <vector>

#include "queue/batch_lookup.hpp"

namespace mailroom {

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

}  // namespace mailroom
