#pragma once

#include <cstdint>
#include <vector>

#include "accounts/batch_lookup.hpp"

namespace mailroom {

/// The sequence of tokens stood behind a cursor, so that ids up to `highest` came again.
struct IdReuse {
  std::int64_t highest = 0;
  std::int64_t until = 0;  ///< when it was put ahead again, in microseconds since 1970
};

/// As operators fixed it, and what is not fixed yet.
std::vector<IdReuse> find_id_reuses(pqxx::transaction_base& transaction);

/// A token that was made after a batch was claimed cannot have been in that batch: its id was another token's
/// then, and moves from `tokens` to `of_others`. Tokens keep whole seconds. Of an id that came again it is
/// unsure whose it was when both happened in one second, or the token is not there any more.
void tell_tokens_apart(const std::vector<TokenSpan>& spans, const std::vector<IdReuse>& reuses,
                       std::vector<BatchRecord>& batches);

}  // namespace mailroom
