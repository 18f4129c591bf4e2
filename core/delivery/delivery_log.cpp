// Reasons are compared by their words, since replies have ids, times and addresses that differ each time.

#include "delivery/delivery_log.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "delivery/reply_text.hpp"

namespace mailroom::delivery {
namespace {

using std::chrono::minutes;

constexpr minutes reminder{10};   ///< of an outage that lasts
constexpr minutes silence{10};    ///< after a line about mails with the same reason
constexpr int most_in_minute{5};  ///< lines about mails
constexpr std::size_t most_reasons{256};

std::string age_of(TimePoint since, TimePoint now) {
  return format_duration(std::chrono::floor<std::chrono::seconds>(now - since));
}

/// True if a mail with this outcome was refused by the receiver, or cannot be written yet, which has a
/// reason. What was not tried, or ended otherwise, the totals count.
bool is_refusal(const claim::TokenOutcome& outcome) {
  if (outcome.state == fate::Outcome::deferred) return outcome.attempts > 0 || !outcome.reply.empty();
  return outcome.state == fate::Outcome::rejected || outcome.state == fate::Outcome::unknown;
}

}  // namespace

std::string kind_of_reason(std::string_view reason) {
  constexpr std::size_t code_length = 3;
  std::string kind;
  for (std::size_t at = 0; at < reason.size();) {
    const auto end = std::min(reason.find(' ', at), reason.size());
    const auto word = reason.substr(at, end - at);
    const bool is_code = at == 0 && word.size() == code_length;
    const bool is_short = word.size() <= 2;  // a status, and no id
    if (is_code || is_short || word.find_first_of("0123456789@") == std::string_view::npos)
      kind += (kind.empty() ? "" : " ") + std::string(word);
    at = end + 1;
  }
  return kind;
}

void DeliveryLog::unavailable(const DeliveryWords& words, const std::string& sink, const std::string& reason,
                              bool others_work, TimePoint now) {
  auto kind = kind_of_reason(reason);
  const auto [found, is_first] = outages_.try_emplace(sink, Outage{now, kind, now});
  if (is_first) {
    const auto what =
        others_work ? fmt::format("a {0} is unavailable, its {1}s go to another {0}", words.side, words.item)
                    : fmt::format("the {} is unavailable, its {}s wait in the queue", words.side, words.item);
    return log_.warn(what, {{words.side, sink}, {"reason", without_addresses(reason)}});
  }
  auto& outage = found->second;
  const bool is_another = outage.reason != kind;
  if (!is_another && now - outage.said_at < reminder) return;
  outage.reason = std::move(kind);
  outage.said_at = now;
  log_.warn(fmt::format("the {} is {}", words.side,
                        is_another ? "unavailable for another reason" : "still unavailable"),
            {{words.side, sink}, {"for", age_of(outage.since, now)}, {"reason", without_addresses(reason)}});
}

void DeliveryLog::available(const DeliveryWords& words, const std::string& sink, TimePoint now) {
  const auto found = outages_.find(sink);
  if (found == outages_.end()) return;
  log_.info(fmt::format("the {} is available again", words.side),
            {{words.side, sink}, {"after", age_of(found->second.since, now)}});
  outages_.erase(found);
}

void DeliveryLog::waits(const DeliveryWords& words, const std::string& sink, TimePoint since, TimePoint now) {
  constexpr std::chrono::seconds usual{30};
  if (now - since < usual || (wait_ && now - wait_->said_at < reminder)) return;
  log_.warn(fmt::format("the {} does not answer, and its {} wait for that", words.side, words.messages),
            {{words.side, sink}, {"for", age_of(since, now)}});
  wait_ = Wait{wait_ ? wait_->since : since, now, sink};
}

void DeliveryLog::waits_no_longer(const DeliveryWords& words, TimePoint now) {
  if (!wait_) return;
  log_.info(fmt::format("the wait for the {} is over", words.side),
            {{words.side, wait_->sink}, {"after", age_of(wait_->since, now)}});
  wait_.reset();
}

bool DeliveryLog::is_news(const std::string& reason, TimePoint now) {
  const auto known = refusals_.find(reason);
  if (known != refusals_.end() && now - known->second < silence) return false;
  if (now - minute_ >= minutes(1)) {
    minute_ = now;
    lines_ = 0;
  }
  if (lines_ >= most_in_minute) return false;
  ++lines_;
  if (refusals_.size() >= most_reasons) refusals_.clear();
  refusals_[reason] = now;
  return true;
}

void DeliveryLog::outcome(const DeliveryWords& words, const claim::TokenOutcome& outcome, TimePoint now) {
  const auto* const state = fate::outcome_name(outcome.state);
  const auto words_of_it =
      outcome.code == 0 ? outcome.reply : fmt::format("{} {}", outcome.code, outcome.reply);
  const auto reason = without_addresses(words_of_it);
  if (!is_refusal(outcome) || !is_news(fmt::format("{} {}", state, kind_of_reason(words_of_it)), now))
    return log_.debug(words.item, {{"token", outcome.token}, {"state", state}, {"reason", reason}});
  const bool comes_again = outcome.state == fate::Outcome::deferred;
  log_.write(comes_again ? LogLevel::info : LogLevel::warn,
             fmt::format("{} not accepted{}", words.item, comes_again ? " yet" : ""),
             {{"token", outcome.token}, {"state", state}, {"reason", reason}});
}

}  // namespace mailroom::delivery
