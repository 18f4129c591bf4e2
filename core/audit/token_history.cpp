// Gathers what every table says of the tokens, and judges the newest of them.

#include "audit/token_history.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/text.hpp"

namespace mailroom::audit {
namespace {

constexpr std::size_t max_reports = 20;

void add_token_changes(History& history, const TokenFacts& token) {
  if (!token.exists) return;
  const auto add = [&](feed::EventKind kind, Moment at) {
    history.timeline.entries.push_back({kind, at, feed::StoredToken(token)});
  };
  add(feed::EventKind::created, token.created_at);
  if (token.consumed_at) add(feed::EventKind::consumed, *token.consumed_at);
  if (!token.consumed_at && token.expires_at <= history.now) add(feed::EventKind::expired, token.expires_at);
}

void add_deliveries(Timeline& timeline, const std::vector<feed::DeliveryRecord>& deliveries) {
  for (const auto& delivery : deliveries) {
    for (const auto& attempt : delivery.attempts)
      timeline.add(attempt);
    for (const auto& report : delivery.reports)
      timeline.add(report);
  }
}

/// Returns when `tokens` may have been leased: during their lifetimes and, if rewound or replayed, also in
/// the hour after that.
std::vector<queue::TokenSpan> spans_of(const std::vector<TokenFacts>& tokens,
                                       const std::vector<feed::Operation>& operations) {
  std::vector<queue::TokenSpan> spans;
  for (const auto& token : tokens) {
    auto life = queue::token_span(token.id, token.created_at, token.expires_at);
    if (token.exists) life.made = token.created_at;
    spans.push_back(life);
    for (const auto& operation : operations) {
      if (operation.is_forward || operation.kind == feed::EventKind::revoked ||
          !selection::contains(operation.tokens, token.id))
        continue;
      spans.push_back({.token = token.id,
                       .since = operation.at,
                       .until = operation.at + std::chrono::hours(1),
                       .made = life.made});
    }
  }
  return spans;
}

void add_skip(Timeline& timeline, const TokenReport& report) {
  const auto& status = report.status;
  if (!status.skip) return;
  timeline.entries.push_back({feed::EventKind::skipped, status.skip->claimed_at,
                              feed::TokenSkip{.token = report.token,
                                              .batch = status.skip->id,
                                              .queue = status.queue,
                                              .reason = status.reason,
                                              .reason_certain = status.reason_certain}});
}

/// True if the token is of the account or the address that was asked for.
bool is_asked_for(const TokenFacts& token, const History& history, const std::string& address) {
  if (history.is_of_account && token.account.id == history.account_id) return true;
  const auto is_it = [&](const std::string& other) { return lower_case(other) == lower_case(address); };
  return !address.empty() &&
         (is_it(token.account.email) || std::ranges::any_of(token.deliveries, [&](const auto& delivery) {
            return is_it(delivery.last().address);
          }));
}

/// The next steps for whoever was asked for. A message that was asked for itself is mailed to all of its
/// recipients.
std::vector<NextStep> steps_of(pqxx::transaction_base& transaction, const History& history,
                               const std::string& address) {
  const auto& first = history.tokens.front();
  if (history.messages.empty() || is_asked_for(first.token, history, address))
    return read_next_steps(transaction, {first}, 1);
  std::vector<TokenReport> of_message;
  std::ranges::copy_if(history.tokens, std::back_inserter(of_message),
                       [&](const auto& report) { return report.token.message == first.token.message; });
  const auto message = std::ranges::find_if(
      history.messages, [&](const auto& summary) { return summary.id == first.token.message; });
  return read_next_steps(transaction, of_message,
                         message == history.messages.end() ? 1 : message->recipients);
}

void add_token_statuses(pqxx::transaction_base& transaction, const AuditRequest& request, History& history,
                        std::vector<TokenFacts> tokens, const std::vector<feed::Operation>& operations,
                        const std::vector<queue::BatchRecord>& batches) {
  std::stable_partition(tokens.begin(), tokens.end(),
                        [&](const auto& token) { return is_asked_for(token, history, request.address); });
  tokens.resize(std::min(tokens.size(), max_reports));
  for (auto& token : tokens) {
    token.operations = operations;
    for (const auto& batch : batches) {
      if (selection::contains(batch.tokens, token.id)) token.batches.push_back(batch);
      if (selection::contains(batch.of_others, token.id)) token.id_was_anothers = true;
    }
  }
  read_token_positions(transaction, request.queues, tokens);
  for (const auto& token : tokens) {
    auto report = report_on(request.only_queue ? in_queue(token, request.queues.front()) : token);
    if (request.only_queue && report.status.outcome == fate::Outcome::not_taken)
      report.status.queue = request.queues.front();
    auto& status = report.status;
    if (status.outcome == fate::Outcome::waiting && status.reason.empty() && report.has_status())
      status.turn = read_waiting_turn(transaction, status.queue, token.id);
    if (request.queues.size() > 1) report.by_queue = reports_by_queue(token, request.queues);
    if (report.by_queue.empty()) add_skip(history.timeline, report);
    for (const auto& of_queue : report.by_queue)
      add_skip(history.timeline, of_queue);
    history.tokens.push_back(std::move(report));
  }
  history.next = steps_of(transaction, history, request.address);
}

/// True if the batch skipped all of its tokens of `tokens`, and their deliveries say why.
bool is_told_by_deliveries(const queue::BatchRecord& batch, const std::vector<TokenFacts>& tokens) {
  if (!batch.is_skipped()) return false;
  return std::all_of(tokens.begin(), tokens.end(), [&](const auto& token) {
    return !selection::contains(batch.tokens, token.id) ||
           std::any_of(token.deliveries.begin(), token.deliveries.end(),
                       [&](const auto& delivery) { return delivery.queue == batch.queue; });
  });
}

}  // namespace

void add_tokens(pqxx::transaction_base& transaction, const AuditRequest& request, History& history,
                std::vector<TokenFacts> tokens) {
  if (tokens.empty()) return;
  auto& timeline = history.timeline;
  std::vector<selection::IdRange> ids;
  auto since = history.now;
  for (const auto& token : tokens) {
    ids.push_back({.first = token.id, .end = token.id + 1});
    since = std::min(since, token.created_at);
  }
  const auto operations = feed::operations_on_tokens(transaction, ids, std::max(since, Moment()));
  const auto batches = queue::find_batches(transaction, spans_of(tokens, operations));
  const auto deliveries = feed::find_deliveries(transaction, ids);
  for (auto& token : tokens)
    set_deliveries(token, deliveries);
  std::for_each(tokens.rbegin(), tokens.rend(),
                [&](const auto& token) { add_token_changes(history, token); });
  for (const auto& operation : operations) {
    if (!operation.tokens.empty()) timeline.add(operation);
  }
  for (const auto& token : tokens)
    add_deliveries(timeline, token.deliveries);
  for (const auto& batch : batches) {
    if (batch.tokens.empty()) continue;
    const auto abandonments = abandonments_of(batch);
    timeline.entries.insert(timeline.entries.end(), abandonments.begin(), abandonments.end());
    if (!is_told_by_deliveries(batch, tokens)) timeline.add(batch);
  }
  add_token_statuses(transaction, request, history, std::move(tokens), operations, batches);
}

}  // namespace mailroom::audit
