// A batch that cannot be read ahead is read when its turn comes, with the same error if that lasts.

#include "claim/batch_fetch.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include "base/threads.hpp"

namespace mailroom::claim {
namespace {

/// How long to wait for a second session while a batch is leased: a pooler may have no more to give.
constexpr Milliseconds open_patience{2000};

template <typename Work>
std::future<void> in_thread(Work work) {
  const BlockedSignals blocked;
  return std::async(std::launch::async, std::move(work));
}

/// What runs ends by itself, or with the connection, if it cannot be cancelled.
void cancel_quietly(db::Connection& connection) {
  try {
    connection.cancel();
  } catch (const Error&) {
    return;
  }
}

/// Cancels what runs on the connection until `work`, which uses it, has ended.
void cancel(const std::future<void>& work, db::Connection& connection) {
  while (work.wait_for(Milliseconds(0)) == std::future_status::timeout) {
    cancel_quietly(connection);
    work.wait_for(process::StopWatcher::moment);
  }
}

}  // namespace

BatchFetch::BatchFetch(db::Connection& connection, const TokenDetail& detail, db::DatabaseTarget target,
                       const char* settings, Log* log, process::StopWatcher* watcher)
    : connection_(connection),
      detail_(detail),
      log_(log),
      watcher_(watcher),
      actions_(connection),
      sessions_(connection, std::move(target), settings, log, watcher) {
  connection_.prepare("fetch", fetch_sql(detail_));
}

void BatchFetch::read(ClaimedBatch& batch, const Each& each) {
  const auto& lease = *batch.reply.lease;
  if (is_large(batch)) {
    tokens_ = read_tokens(connection_, lease, reading(batch, actions_.now()), std::move(tokens_));
    return reader_.join(connection_, tokens_, each);
  }
  if (const auto rows = std::exchange(batch.rows, std::nullopt)) {
    return read_rows(
        lease, *rows, [&](const auto& row) { return read_claimed(row, detail_.with_creation, actions_); },
        [&](const auto& row) { return read_claimed_message(row); }, each);
  }
  read_fetched_rows(
      lease,
      detail_.delivers ? mail_rows(batch) : connection_.run_prepared("fetch", lease.batch, lease.attempt),
      each);
}

void BatchFetch::read_fetched_rows(const Lease& lease, const db::Rows& rows, const Each& each) {
  read_rows(
      lease, rows, [&](const auto& row) { return std::optional(read_fetched(row, detail_, actions_)); },
      [&](const auto& row) { return read_fetched_message(row, detail_); }, each);
}

db::Rows BatchFetch::mail_rows(const ClaimedBatch& batch) {
  const auto& reply = batch.reply;
  if (batch.rows && steady_now() - batch.read_at < longest_ahead) return *batch.rows;
  const bool with_contents = reply.size <= tokens_with_contents;
  return connection_.run_prepared("fetch", reply.lease->batch, reply.lease->attempt, with_contents);
}

bool BatchFetch::are_whole(const db::Rows& rows) {
  if (detail_.per_recipient) return false;
  return std::all_of(rows.begin(), rows.end(), [&](const db::Row& row) {
    // One that is not known is read now.
    actions_.require(row.view("action"));
    if (row.is_null("message")) return true;
    const auto message = read_fetched_message(row, detail_);
    return message && !(detail_.reads_raw && message->raw_size);
  });
}

std::optional<ClaimedBatch> BatchFetch::read_and_claim(
    ClaimedBatch& batch, const Each& each, const NextClaim& next,
    const std::function<ClaimedBatch(const ClaimRequest&)>& claim) {
  const auto& lease = *batch.reply.lease;
  const auto rows = mail_rows(batch);
  batch.rows.reset();
  if (!are_whole(rows)) {
    read_fetched_rows(lease, rows, each);
    return std::nullopt;
  }
  ClaimedBatch claimed;
  std::future<void> claiming;
  const auto add = [&](const TokenRow& row) {
    each(row);
    if (claiming.valid()) return;
    if (const auto* const request = next())
      claiming = in_thread([&, request] {
        claimed = claim(*request);
        read_mails_ahead(claimed);
      });
  };
  try {
    read_fetched_rows(lease, rows, add);
  } catch (...) {
    if (claiming.valid()) {
      const process::StopWatcher::Wait waiting(watcher_, process::Awaited::database, &connection_);
      claiming.wait();
    }
    throw;
  }
  if (!claiming.valid()) return std::nullopt;
  const process::StopWatcher::Wait waiting(watcher_, process::Awaited::database, &connection_);
  try {
    claiming.get();
  } catch (const Error& error) {
    // The sink has the whole batch, and delivers it. What prevents the claim meets the next one too.
    if (log_ != nullptr) log_->debug("the next claim failed", {{"reason", error.what()}});
    return std::nullopt;
  }
  return claimed;
}

void BatchFetch::read_mails_ahead(ClaimedBatch& claimed) {
  if (!claimed.reply.lease) return;
  try {
    claimed.read_at = steady_now();
    claimed.rows = mail_rows({.reply = claimed.reply});
  } catch (const Error& error) {
    note_not_ahead(error);
  }
}

void BatchFetch::read_rows(const Lease& lease, const db::Rows& rows, const ReadToken& read_token,
                           const ReadMessage& read_message, const Each& each) {
  std::vector<TokenRow> tokens;
  Messages messages;
  for (const auto& row : rows) {
    auto token = read_token(row);
    if (!token) continue;
    // Those before the first message need no memory.
    if (!detail_.per_recipient && !token->message && tokens.empty()) {
      each(*token);
      continue;
    }
    messages.push_back(token->message ? read_message(row) : std::nullopt);
    tokens.push_back(*std::move(token));
  }
  if (detail_.per_recipient) {
    counts_.read(connection_, lease.queue, *detail_.per_recipient, tokens);
    for (auto& token : tokens)
      counts_.set(token);
  }
  read_messages(tokens, messages, each);
}

void BatchFetch::read_messages(std::vector<TokenRow>& tokens, Messages& messages, const Each& each) {
  const auto missing = [&](std::size_t i) { return messages[i] ? std::nullopt : tokens[i].message; };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& token = tokens[i];
    auto* message = messages[i] ? &*messages[i] : nullptr;
    if (const auto id = missing(i)) {
      message = messages_.get(connection_, *id, [&] { return messages_ahead(i, tokens.size(), missing); });
      // It was deleted.
      if (message == nullptr) continue;
    }
    if (message != nullptr) {
      set_message(token, *message);
      const auto id_of = [&](std::size_t k) { return tokens[k].message; };
      if (detail_.reads_raw)
        raw_mails_.set(connection_, *message, [&] { return messages_ahead(i, tokens.size(), id_of); });
    }
    each(token);
  }
}

std::optional<ClaimedBatch> BatchFetch::read_beside(ClaimedBatch& batch, const Each& each,
                                                    const std::function<ClaimedBatch()>& claim) {
  ClaimedBatch claimed;
  BatchTokens ahead;
  const auto known = actions_.now();
  const bool has_run = sessions_.run(
      [&](db::Connection&) {
        claimed = claim();
        ahead = read_ahead(claimed, known, std::move(spare_));
      },
      [&](db::Connection& second, const TwoSessions::InBoth& in_both) {
        tokens_ = read_tokens(second, *batch.reply.lease, reading(batch, known), std::move(tokens_));
        reader_.join(second, tokens_, each, in_both);
      });
  if (!has_run) return std::nullopt;
  spare_ = std::exchange(tokens_, std::move(ahead));
  return claimed;
}

BatchTokens BatchFetch::read_ahead(const ClaimedBatch& claimed,
                                   const std::shared_ptr<const queue::Actions>& known,
                                   BatchTokens memory) const {
  if (!claimed.reply.lease || !is_large(claimed)) return memory;
  try {
    return read_tokens(connection_, *claimed.reply.lease, reading(claimed, known), std::move(memory));
  } catch (const Error& error) {
    note_not_ahead(error);
    return {};
  }
}

/// The claim is made all the same. What prevents the read meets read() too, which reads them again.
void BatchFetch::note_not_ahead(const Error& error) const {
  if (log_ != nullptr) log_->debug("the tokens could not be read ahead", {{"reason", error.what()}});
}

bool TwoSessions::open() {
  if (second_ || !may_open_) return may_open_;
  const process::StopWatcher::Wait waiting(watcher_, process::Awaited::database, &first_);
  try {
    second_ = std::make_unique<db::Connection>(target_, "mailroom read",
                                               db::SessionLimits{.answer = open_patience});
    // The first session is known to have a server process of its own; so has the other one.
    second_->own_session();
    second_->run(settings_);
  } catch (const Error& error) {
    second_.reset();
    may_open_ = false;
    if (log_ != nullptr) log_->info("no second session for large batches", {{"reason", error.what()}});
  }
  return may_open_;
}

bool TwoSessions::run(const Work& on_first,
                      const std::function<void(db::Connection& second, const InBoth&)>& on_second) {
  if (!open()) return false;
  auto first = in_thread([&] { on_first(first_); });
  const auto in_both = [&](const Work& work) {
    auto share = in_thread([&] {
      first.wait();
      work(first_);
    });
    try {
      work(*second_);
    } catch (...) {
      // The first session, with its own work or its share, may wait for the same as the second did.
      cancel(share, first_);
      throw;
    }
    const process::StopWatcher::Wait waiting(watcher_, process::Awaited::database, &first_);
    share.get();
  };
  try {
    const process::StopWatcher::Wait waiting(watcher_, process::Awaited::database, second_.get());
    on_second(*second_, in_both);
  } catch (...) {
    const process::StopWatcher::Wait waiting(watcher_, process::Awaited::database, &first_);
    first.wait();
    throw;
  }
  const process::StopWatcher::Wait waiting(watcher_, process::Awaited::database, &first_);
  first.get();
  return true;
}

}  // namespace mailroom::claim
