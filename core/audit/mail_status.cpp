#include "audit/mail_status.hpp"

#include <algorithm>

namespace mailroom {
namespace {

std::size_t place_of(const std::string& queue, const TokenFacts& facts) {
  const auto found = std::find_if(facts.queues.begin(), facts.queues.end(),
                                  [&](const auto& position) { return position.queue == queue; });
  return static_cast<std::size_t>(found - facts.queues.begin());
}

bool has_mail_in(const TokenFacts& facts, const std::string& queue) {
  return std::any_of(facts.mails.begin(), facts.mails.end(),
                     [&](const auto& mail) { return mail.queue == queue; });
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

bool may_be_accepted(const MailRecord& mail) {
  return mail.unknowns > 0 || std::any_of(mail.attempts.begin(), mail.attempts.end(),
                                          [](const auto& attempt) { return attempt.state == "unknown"; });
}

}  // namespace

void set_mails(TokenFacts& facts, const std::vector<MailRecord>& mails) {
  const auto is_anothers = [&](Moment at) { return facts.exists && !can_be_of(facts, at); };
  for (auto mail : mails) {
    if (mail.token != facts.id) continue;
    const auto own = std::find_if(mail.attempts.begin(), mail.attempts.end(),
                                  [&](const auto& attempt) { return !is_anothers(attempt.at); });
    mail.attempts.erase(mail.attempts.begin(), own);
    if (mail.accepted_at && is_anothers(*mail.accepted_at)) mail.accepted_at.reset();
    for (auto& attempt : mail.attempts)
      attempt.token = facts;
    if (!mail.attempts.empty()) facts.mails.push_back(std::move(mail));
  }
}

std::vector<MailStatus> judge_mails(const TokenFacts& facts) {
  std::vector<MailStatus> statuses;
  for (const auto& mail : facts.mails) {
    MailStatus status{.mail = mail, .decisive = mail.last(), .next = next_of(facts, mail.queue)};
    for (const auto& attempt : mail.attempts) {
      if (attempt.state != "accepted") continue;
      ++status.accepted;
      status.decisive = attempt;
    }
    status.maybe = status.accepted == 0 && may_be_accepted(mail);
    status.is_of_other_queue = !facts.queues.empty() && facts.queues.front().queue != mail.queue;
    statuses.push_back(std::move(status));
  }
  std::stable_sort(statuses.begin(), statuses.end(), [&](const auto& a, const auto& b) {
    return place_of(a.mail.queue, facts) < place_of(b.mail.queue, facts);
  });
  return statuses;
}

TokenFacts without_mails(TokenFacts facts) {
  const auto is_mailed = [&](const auto& record) { return has_mail_in(facts, record.queue); };
  facts.batches.erase(std::remove_if(facts.batches.begin(), facts.batches.end(), is_mailed),
                      facts.batches.end());
  facts.queues.erase(std::remove_if(facts.queues.begin(), facts.queues.end(), is_mailed), facts.queues.end());
  facts.mails.clear();
  return facts;
}

std::string mail_outcome_name(const MailStatus& status) {
  if (status.accepted > 0) return "mailed";
  return status.maybe ? "maybe mailed" : status.decisive.state;
}

}  // namespace mailroom
