// A batch that cannot be read ahead is read when its turn comes, with the same error if that lasts.

#include "claim/batch_fetch.hpp"

#include <utility>

namespace mailroom {

BatchFetch::BatchFetch(Connection& connection, const TokenDetail& detail, DatabaseTarget target,
                       const char* settings, Log* log, StopWatcher* watcher)
    : connection_(connection),
      detail_(detail),
      log_(log),
      sessions_(connection, std::move(target), settings, log, watcher) {
  connection_.prepare("fetch", fetch_sql(detail_));
}

void BatchFetch::read(ClaimedBatch& batch, const Each& each) {
  const auto& lease = *batch.reply.lease;
  if (is_large(batch)) {
    tokens_ = read_tokens(connection_, lease, detail_.with_creation, std::move(tokens_));
    return reader_.join(connection_, tokens_, each);
  }
  if (const auto rows = std::exchange(batch.rows, std::nullopt)) {
    for (const auto& row : *rows) {
      if (const auto token = read_claimed(row, detail_.with_creation)) each(*token);
    }
    return;
  }
  for (const auto& row : connection_.run_prepared("fetch", lease.batch, lease.attempt))
    each(read_fetched(row, detail_));
}

std::optional<ClaimedBatch> BatchFetch::read_beside(ClaimedBatch& batch, const Each& each,
                                                    const std::function<ClaimedBatch()>& claim) {
  ClaimedBatch claimed;
  BatchTokens ahead;
  const bool has_run = sessions_.run(
      [&](Connection&) {
        claimed = claim();
        ahead = read_ahead(claimed, std::move(spare_));
      },
      [&](Connection& second, const TwoSessions::InBoth& in_both) {
        tokens_ = read_tokens(second, *batch.reply.lease, detail_.with_creation, std::move(tokens_));
        reader_.join(second, tokens_, each, in_both);
      });
  if (!has_run) return std::nullopt;
  spare_ = std::exchange(tokens_, std::move(ahead));
  return claimed;
}

BatchTokens BatchFetch::read_ahead(const ClaimedBatch& claimed, BatchTokens memory) const {
  if (!claimed.reply.lease || !is_large(claimed)) return memory;
  try {
    return read_tokens(connection_, *claimed.reply.lease, detail_.with_creation, std::move(memory));
  } catch (const Error& error) {
    // The claim is made all the same. What prevents the read meets read() too, which reads them again.
    if (log_ != nullptr) log_->debug("the tokens could not be read ahead", {{"reason", error.what()}});
    return {};
  }
}

}  // namespace mailroom
