// The last accepted attempt decides. Outcomes from before the token's creation are those of an earlier token.

#include "audit/token_delivery.hpp"

#include <algorithm>

namespace mailroom {
namespace {

std::size_t place_of(const std::string& queue, const TokenFacts& facts) {
  const auto found = std::find_if(facts.queues.begin(), facts.queues.end(),
                                  [&](const auto& position) { return position.queue == queue; });
  return static_cast<std::size_t>(found - facts.queues.begin());
}

bool has_delivery_in(const TokenFacts& facts, const std::string& queue) {
  return std::any_of(facts.deliveries.begin(), facts.deliveries.end(),
                     [&](const auto& delivery) { return delivery.queue == queue; });
}

std::optional<Outcome> next_of(const TokenFacts& facts, const std::string& queue) {
  const bool is_leased = std::any_of(facts.batches.begin(), facts.batches.end(), [&](const auto& batch) {
    return batch.queue == queue && batch.is_open();
  });
  if (is_leased) return Outcome::in_open_batch;
  const auto place = place_of(queue, facts);
  if (place == facts.queues.size()) return std::nullopt;
  const auto waits = waits_in(facts, facts.queues[place]);
  return waits == Outcome::waiting_not_due ? std::nullopt : waits;
}

bool may_be_accepted(const DeliveryRecord& delivery) {
  return delivery.unknowns > 0 || std::any_of(delivery.attempts.begin(), delivery.attempts.end(),
                                              [](const auto& attempt) { return attempt.state == "unknown"; });
}

}  // namespace

void set_deliveries(TokenFacts& facts, const std::vector<DeliveryRecord>& deliveries) {
  const auto is_anothers = [&](Moment at) { return facts.exists && !can_be_of(facts, at); };
  for (auto delivery : deliveries) {
    if (delivery.token != facts.id) continue;
    const auto own = std::find_if(delivery.attempts.begin(), delivery.attempts.end(),
                                  [&](const auto& attempt) { return !is_anothers(attempt.at); });
    delivery.attempts.erase(delivery.attempts.begin(), own);
    if (delivery.accepted_at && is_anothers(*delivery.accepted_at)) delivery.accepted_at.reset();
    for (auto& attempt : delivery.attempts)
      attempt.token = facts;
    if (!delivery.attempts.empty()) facts.deliveries.push_back(std::move(delivery));
  }
}

std::vector<TokenDelivery> judge_deliveries(const TokenFacts& facts) {
  std::vector<TokenDelivery> statuses;
  for (const auto& delivery : facts.deliveries) {
    TokenDelivery status{
        .delivery = delivery, .decisive = delivery.last(), .next = next_of(facts, delivery.queue)};
    for (const auto& attempt : delivery.attempts) {
      if (attempt.state != "accepted") continue;
      ++status.accepted;
      status.decisive = attempt;
    }
    status.maybe = status.accepted == 0 && may_be_accepted(delivery);
    status.is_of_other_queue = !facts.queues.empty() && facts.queues.front().queue != delivery.queue;
    statuses.push_back(std::move(status));
  }
  std::stable_sort(statuses.begin(), statuses.end(), [&](const auto& a, const auto& b) {
    return place_of(a.delivery.queue, facts) < place_of(b.delivery.queue, facts);
  });
  return statuses;
}

TokenFacts without_deliveries(TokenFacts facts) {
  const auto is_delivered = [&](const auto& record) { return has_delivery_in(facts, record.queue); };
  facts.batches.erase(std::remove_if(facts.batches.begin(), facts.batches.end(), is_delivered),
                      facts.batches.end());
  facts.queues.erase(std::remove_if(facts.queues.begin(), facts.queues.end(), is_delivered),
                     facts.queues.end());
  facts.deliveries.clear();
  return facts;
}

std::string delivery_outcome_name(const TokenDelivery& status) {
  if (status.accepted > 0) return "accepted";
  return status.maybe ? "maybe accepted" : status.decisive.state;
}

}  // namespace mailroom
