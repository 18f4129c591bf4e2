// Compares the second of a token's creation with the second in which its batch was claimed.

#include "queue/reused_ids.hpp"

#include <algorithm>
#include <set>

#include "db/time_sql.hpp"

namespace mailroom {
namespace {

/// The ids of one batch without duplicates.
struct Parts {
  std::set<std::int64_t> own;
  std::set<std::int64_t> of_others;
  std::set<std::int64_t> unsure;
};

bool came_again(const std::vector<IdReuse>& reuses, const BatchRecord& batch, std::int64_t id) {
  return std::any_of(reuses.begin(), reuses.end(), [&](const auto& reuse) {
    return id <= reuse.highest && batch.claimed_at < reuse.until;
  });
}

Parts divide(const BatchRecord& batch, const std::vector<TokenSpan>& spans,
             const std::vector<IdReuse>& reuses) {
  const auto second = std::chrono::floor<std::chrono::seconds>(batch.claimed_at);
  Parts parts;
  for (const auto& span : spans) {
    if (!contains(batch.tokens, span.token)) continue;
    if (span.made && *span.made > second) {
      parts.of_others.insert(span.token);
      continue;
    }
    parts.own.insert(span.token);
    if ((!span.made || *span.made == second) && came_again(reuses, batch, span.token))
      parts.unsure.insert(span.token);
  }
  return parts;
}

std::vector<IdRange> ranges_of(const std::set<std::int64_t>& ids) {
  return to_id_ranges({ids.begin(), ids.end()});
}

}  // namespace

std::vector<IdReuse> find_id_reuses(pqxx::transaction_base& transaction) {
  std::vector<IdReuse> reuses;
  for (const auto& row : Connection::execute(
           transaction, "SELECT highest, " + microseconds_sql("reused_until") + " FROM mailroom_id_reuses()"))
    reuses.push_back(
        {.highest = row[0].as<std::int64_t>(), .until = moment_in<std::chrono::microseconds>(row[1])});
  return reuses;
}

void separate_reused_ids(const std::vector<TokenSpan>& spans, const std::vector<IdReuse>& reuses,
                         std::vector<BatchRecord>& batches) {
  for (auto& batch : batches) {
    const auto parts = divide(batch, spans, reuses);
    batch.tokens = ranges_of(parts.own);
    batch.of_others = ranges_of(parts.of_others);
    batch.unsure = ranges_of(parts.unsure);
  }
}

}  // namespace mailroom
