// The text of each outcome, with the time, the batch and the reason that are on record.

#include "cmd/audit/audit_status.hpp"

#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/moment.hpp"
#include "base/text.hpp"
#include "cmd/audit/token_delivery_text.hpp"
#include "cmd/events/event_text.hpp"

namespace mailroom {
namespace {

std::string where_of(const BatchRecord& batch) {
  return where_and_actor(batch, shown_text(batch.claimed_by));
}

std::string emitted_text(const TokenReport& report) {
  const auto& status = report.status;
  const auto& queues = report.token.queues;
  const auto more = queues.empty() || queues.front().records_complete ? "" : " or more";
  const auto time = moment_text(*status.batch->emitted_at);
  auto text = status.times == 1 && status.maybe == 0
                  ? fmt::format("emitted once{}, {} {}", more, time, where_of(*status.batch))
                  : fmt::format("emitted {}{}, last {} {}", times_text(status.times), more, time,
                                where_of(*status.batch));
  if (status.maybe > 0) text += fmt::format(", and maybe {} more", times_text(status.maybe));
  return text;
}

std::string maybe_text(const TokenReport& report) {
  const auto& batch = *report.status.batch;
  if (contains(batch.unsure, report.token.id))
    return fmt::format("perhaps emitted, {} {}, unless that was another token with its id",
                       moment_text(*batch.emitted_at), where_of(batch));
  const auto when = fmt::format("{} {}", moment_text(*batch.emitted_at), where_of(batch));
  if (contains(batch.skipped_ids, report.token.id))
    return fmt::format(
        "perhaps emitted: {}, skipped at the last attempt, but maybe emitted at an earlier one", when);
  return fmt::format("probably emitted, {}: {} of its {} tokens were", when, with_thousands(batch.emitted),
                     with_thousands(batch.size));
}

std::string skipped_text(const TokenStatus& status) {
  return fmt::format("not emitted: skipped at {}, {}", moment_text(status.skip->claimed_at),
                     skip_reason_text(status.reason, status.reason_certain));
}

std::string skipped_in_batch_text(const TokenStatus& status) {
  return fmt::format("not emitted: {}, but skipped when its line was written, {}, {}",
                     where_of(*status.batch), moment_text(*status.batch->emitted_at),
                     skip_reason_text(status.reason, status.reason_certain));
}

std::string outcome_text(const TokenReport& report) {
  const auto& status = report.status;
  switch (status.outcome) {
    case Outcome::emitted:
      return emitted_text(report);
    case Outcome::maybe_emitted:
      return maybe_text(report);
    case Outcome::in_open_batch:
      return fmt::format("leased {} {}, not acknowledged yet", moment_text(status.batch->claimed_at),
                         where_of(*status.batch));
    case Outcome::dead:
      return fmt::format("not acknowledged: batch {} was dead-lettered {} after {} attempts",
                         status.batch->id, moment_text(*status.batch->dead_at),
                         with_thousands(status.batch->attempts));
    case Outcome::skipped_in_batch:
      return skipped_in_batch_text(status);
    case Outcome::waiting:
      return fmt::format("not emitted yet: it waits in queue {}", shown_text(status.queue));
    case Outcome::waiting_not_due:
      return fmt::format("not emitted: queue {} has not reached it yet, and will skip it",
                         shown_text(status.queue));
    case Outcome::waiting_again:
      return fmt::format("not emitted yet: queue {} will emit it after a replay or a late commit",
                         shown_text(status.queue));
    case Outcome::skipped:
      return skipped_text(status);
    case Outcome::moved_past:
      return fmt::format("not emitted: the cursor was moved past it {} by {}",
                         moment_text(status.operation->at), shown_text(status.operation->actor));
    case Outcome::missed:
      return fmt::format(
          "not emitted: created after queue {} had moved past its id; mailroom rewind-cursor --fix-sequence "
          "emits it",
          shown_text(status.queue));
    case Outcome::not_recorded:
      return "not known to be emitted: the records do not reach back to it";
    case Outcome::not_taken:
      return fmt::format(
          "not emitted: {} its action, {}",
          status.queue.empty() ? "no queue takes" : "queue " + shown_text(status.queue) + " does not take",
          shown_text(report.token.action));
    case Outcome::unexplained:
      break;
  }
  return "not emitted: the cursor is past it, and no record says why";
}

std::string next_text(const TokenStatus& status) {
  if (!status.next) return "";
  return *status.next == Outcome::in_open_batch ? ", and leased again" : "; it will be emitted again";
}

/// What each queue did with the token; for one queue the deliveries, and what other queues did.
std::string what_became_of(const TokenReport& report, Moment now) {
  std::string text;
  for (const auto& of_queue : report.by_queue) {
    text += fmt::format("{}in queue {}, {}", text.empty() ? "" : "; ", shown_text(of_queue.queue),
                        what_became_of(of_queue, now));
  }
  if (!text.empty()) return text;
  for (const auto& delivery : report.deliveries)
    text += (text.empty() ? "" : "; ") + token_delivery_text(delivery, now);
  if (!report.has_status()) return text;
  return text + (text.empty() ? "" : "; ") + outcome_text(report) + next_text(report.status);
}

std::string state_text(const TokenFacts& token, Moment now) {
  if (!token.exists) return "no longer in the database";
  if (token.consumed_at && *token.consumed_at > now)
    return fmt::format("consumed, recorded as {}", moment_text(*token.consumed_at));
  if (token.consumed_at) return fmt::format("consumed {} ago", coarse(now - *token.consumed_at));
  if (token.expires_at <= now)
    return fmt::format("expired {} ago, not consumed", coarse(now - token.expires_at));
  const auto left = coarse(token.expires_at - now);
  if (token.state == "due") return fmt::format("not consumed, usable for another {}", left);
  return fmt::format("not usable: the account is {}; expires in {}", shown_text(token.account.status), left);
}

}  // namespace

std::string coarse(Moment::duration time) {
  constexpr std::chrono::hours hour{1};
  constexpr std::chrono::days day{1};
  if (time >= 36'525 * day) return "100 years or more";
  const std::chrono::seconds unit = time >= day    ? hour
                                    : time >= hour ? std::chrono::minutes(1)
                                                   : std::chrono::seconds(1);
  return format_duration(std::chrono::floor<Milliseconds>(time - time % unit));
}

std::string times_text(std::int64_t count) {
  return count == 1 ? "once" : fmt::format("{} times", with_thousands(count));
}

std::string skip_reason_text(const std::string& reason, bool certain) {
  if (reason.empty()) return "as it was not due";
  return fmt::format("{}as {}", certain ? "" : "probably ",
                     reason == "wrong status" ? "its account had the wrong status" : shown_text(reason));
}

std::string where_and_actor(const BatchRecord& batch, const std::string& collector) {
  const auto again =
      batch.attempts > 1 ? fmt::format(" at attempt {}", with_thousands(batch.attempts)) : std::string();
  return fmt::format("in batch {} by {}{}", batch.id, collector, again);
}

std::string status_text(const TokenReport& report, Moment now) {
  const auto& token = report.token;
  const auto action = token.action.empty() ? "" : fmt::format(" ({})", shown_text(token.action));
  const auto other = token.id_was_anothers ? "; another token had its id before" : "";
  return fmt::format("token {}{}: {}; {}{}", token.id, action, what_became_of(report, now),
                     state_text(token, now), other);
}

std::string batch_text(const BatchRecord& batch) {
  if (batch.is_state_only()) {
    return fmt::format("batch {} of queue {}: no tokens, only the state of the queue {}, by {}", batch.id,
                       shown_text(batch.queue), moment_text(batch.claimed_at), shown_text(batch.claimed_by));
  }
  auto text = fmt::format("batch {} of queue {}: {}, ", batch.id, shown_text(batch.queue),
                          counted(batch.size, "token"));
  const auto skipped = skipped_text(batch.skipped);
  if (batch.emitted_at) {
    text += fmt::format("{} emitted {}", with_thousands(batch.emitted), moment_text(*batch.emitted_at));
  } else if (batch.dead_at) {
    text += fmt::format("dead-lettered {}", moment_text(*batch.dead_at));
  } else {
    text += fmt::format("leased {}, not acknowledged yet", moment_text(batch.claimed_at));
  }
  text += fmt::format(", by {}, leased {}", shown_text(batch.claimed_by), times_text(batch.attempts));
  return skipped.empty() ? text : text + "; skipped: " + skipped;
}

}  // namespace mailroom
