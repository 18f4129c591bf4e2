// The text of each outcome, with the time, the batch and the reason that are on record.

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/events/event_text.hpp"

namespace mailroom::cmd {
namespace {

std::string where_of(const queue::BatchRecord& batch) {
  return where_and_actor(batch, shown_text(batch.claimed_by));
}

/// `emitted once, TIME in batch 12 by collect alice@host:77`
std::string emitted_text(const audit::TokenReport& report) {
  const auto& status = report.status;
  const auto& queues = report.token.queues;
  const auto more = queues.empty() || queues.front().records_complete ? "" : " or more";
  const auto time = moment_text(*status.batch->emitted_at);
  auto text = status.times == 1 && status.maybe == 0
                  ? fmt::format("emitted once{}, {} {}", more, time, where_of(*status.batch))
                  : fmt::format("emitted {}{}, last {} {}", times_text(status.times), more, time,
                                where_of(*status.batch));
  if (status.maybe > 0) return text + fmt::format(", and maybe {} more", times_text(status.maybe));
  if (status.batch->attempts > 1) text += ", and maybe at an earlier one";
  return text;
}

std::string maybe_text(const audit::TokenReport& report) {
  const auto& batch = *report.status.batch;
  if (selection::contains(batch.unsure, report.token.id))
    return fmt::format("perhaps emitted, {} {}, unless that was another token with its id",
                       moment_text(*batch.emitted_at), where_of(batch));
  const auto when = fmt::format("{} {}", moment_text(*batch.emitted_at), where_of(batch));
  if (selection::contains(batch.skipped_ids, report.token.id))
    return fmt::format(
        "perhaps emitted: {}, skipped at the last attempt, but maybe emitted at an earlier one", when);
  return fmt::format("probably emitted, {}: {} of its {} tokens were", when, with_thousands(batch.emitted),
                     with_thousands(batch.size));
}

std::string why_not_emitted(const audit::TokenStatus& status) {
  const auto reason = skip_reason_text(status.reason, status.reason_certain);
  if (status.skip)
    return fmt::format("not emitted: skipped at {}, {}", moment_text(status.skip->claimed_at), reason);
  return fmt::format("not emitted: {}, but skipped when its line was written, {}, {}",
                     where_of(*status.batch), moment_text(*status.batch->emitted_at), reason);
}

std::string unexplained_text(const audit::TokenReport& report) {
  const auto& status = report.status;
  const std::string fault = fate::fault_text(status.fault);
  if (status.times + status.maybe > 0) return emitted_text(report) + "; unexplained: " + fault;
  return status.fault == fate::Fault::lost ? "not emitted: the cursor is past it, and no record says why"
                                           : "not emitted: " + fault;
}

/// `, behind 1,400 others; at 20/s its turn comes in about 1m10s`
std::string turn_text(const audit::WaitingTurn& turn) {
  constexpr std::chrono::seconds worth_saying{10};
  std::string text;
  if (turn.before > 0)
    text +=
        fmt::format(", behind {}{} {}", turn.before == audit::WaitingTurn::most_counted ? "at least " : "",
                    with_thousands(turn.before), turn.before == 1 ? "other" : "others");
  if (turn.is_paused) return text + "; the queue is paused";
  if (turn.before == 0 || turn.per_second <= 0) return text;
  const auto left =
      std::chrono::seconds(static_cast<std::int64_t>(static_cast<double>(turn.before) / turn.per_second));
  if (left < worth_saying) return text;
  return text +
         fmt::format("; at {:.3g}/s its turn comes in about {}", turn.per_second, format_duration(left));
}

/// Of a token that a queue will find at its place.
std::string waiting_text(const audit::TokenStatus& status) {
  const auto queue = shown_text(status.queue);
  if (!status.reason.empty())
    return fmt::format("not emitted: queue {} has not reached it yet, and will skip it", queue);
  std::string before;
  if (status.batch) {
    before = fmt::format(", and batch {} {} before", status.batch->id,
                         status.batch->emitted_at ? "skipped it" : "was dead-lettered");
  }
  if (status.outcome == fate::Outcome::waiting)
    return fmt::format("not emitted yet: it waits in queue {}{}{}", queue, before,
                       status.turn ? turn_text(*status.turn) : "");
  return fmt::format("not emitted yet: queue {} will emit it after {}{}", queue,
                     status.outcome == fate::Outcome::in_replay ? "a replay" : "a late commit", before);
}

std::string outcome_sentence(const audit::TokenReport& report) {
  const auto& status = report.status;
  switch (status.outcome) {
    case fate::Outcome::emitted:
    case fate::Outcome::emitted_again:
      return emitted_text(report);
    case fate::Outcome::maybe_emitted:
      return maybe_text(report);
    case fate::Outcome::leased:
      return fmt::format("leased {} {}, not acknowledged yet", moment_text(status.batch->claimed_at),
                         where_of(*status.batch));
    case fate::Outcome::dead:
      return fmt::format("not acknowledged: batch {} was dead-lettered {} after {} attempts",
                         status.batch->id, moment_text(*status.batch->dead_at),
                         with_thousands(status.batch->attempts));
    case fate::Outcome::waiting:
    case fate::Outcome::in_gap:
    case fate::Outcome::in_replay:
      return waiting_text(status);
    case fate::Outcome::skipped:
    case fate::Outcome::cancelled:
      return status.next ? waiting_text(status) : why_not_emitted(status);
    case fate::Outcome::moved_past:
      return fmt::format("not emitted: the cursor was moved past it {} by {}",
                         moment_text(status.operation->at), shown_text(status.operation->actor));
    case fate::Outcome::missed:
      return fmt::format(
          "not emitted: created after queue {} had moved past its id; mailroom rewind-cursor --fix-sequence "
          "emits it",
          shown_text(status.queue));
    case fate::Outcome::not_recorded:
      return "not known to be emitted: the records do not reach back to it";
    case fate::Outcome::not_taken:
      return fmt::format(
          "not emitted: {} its action, {}",
          status.queue.empty() ? "no queue takes" : "queue " + shown_text(status.queue) + " does not take",
          shown_text(report.token.action));
    default:
      return unexplained_text(report);
  }
}

std::string prefixed(const char* separator, const std::string& text) {
  return text.empty() ? text : separator + text;
}

std::string accepted_text(const audit::TokenDelivery& status) {
  const auto& attempt = status.decisive;
  const auto perhaps = status.perhaps == 0
                           ? ""
                           : fmt::format(" for certain, and perhaps {} more",
                                         status.perhaps == 1 ? "once" : times_text(status.perhaps));
  auto text = fmt::format("accepted {}{}, {}{}{}{}", times_text(status.accepted), perhaps,
                          status.accepted == 1 ? "" : "last ", moment_text(attempt.at),
                          prefixed(" by ", shown_text(attempt.sink)), prefixed(": ", answer_text(attempt)));
  const auto& reports = status.delivery.reports;
  if (!reports.empty() && reports.back().at >= attempt.at)
    text += fmt::format("; then {} {}{}", reports.back().state, moment_text(reports.back().at),
                        prefixed(": ", answer_text(reports.back())));
  return text;
}

bool is_deferred(const feed::DeliveryAttempt& attempt) {
  return attempt.state == fate::outcome_name(fate::Outcome::deferred);
}

/// When a deferred delivery is tried again.
std::string again_text(const audit::TokenDelivery& status, Moment now) {
  const auto& not_before = status.delivery.not_before;
  if (status.fault != fate::Fault::none) return "but nothing will try it again";
  if (status.outcome == fate::Outcome::leased || (!not_before && status.next == fate::Outcome::leased))
    return "leased for the next attempt";
  if (!not_before || *not_before <= now) return "the next attempt is due";
  return "the next attempt in " + coarse(std::chrono::ceil<std::chrono::seconds>(*not_before - now));
}

/// An outcome that no attempt follows by itself.
std::string ended_text(const audit::TokenDelivery& status) {
  const auto& attempt = status.decisive;
  const auto time = moment_text(attempt.at);
  const auto answer = prefixed(": ", answer_text(attempt));
  const auto sink = shown_text(attempt.sink);
  if (attempt.state == fate::outcome_name(fate::Outcome::unknown))
    return fmt::format("perhaps accepted, {}{}{}", time, prefixed(" by ", sink), answer);
  const auto* certainty = status.maybe ? "perhaps accepted" : "not accepted";
  // The time and the answer are those of the delivery before the rewind.
  if (attempt.is_cancelled_by_rewind()) return fmt::format("{}: cancelled by a rewind", certainty);
  const auto* by = attempt.state == fate::outcome_name(fate::Outcome::rejected) ? " by " : ", ";
  return fmt::format("{}: {} {}{}{}", certainty, shown_text(attempt.state), time, prefixed(by, sink), answer);
}

/// What follows a delivery that was accepted, or given up.
std::string following_text(const audit::TokenDelivery& status, Moment now) {
  const auto* again = status.accepted > 0 ? "delivered" : "tried";
  if (status.next == fate::Outcome::leased) return ", and leased again";
  if (status.next) return fmt::format("; it will be {} again", again);
  return is_deferred(status.delivery.last()) ? ", and deferred since: " + again_text(status, now) : "";
}

std::string next_text(const audit::TokenStatus& status) {
  if (!status.next || status.outcome == fate::Outcome::skipped || status.outcome == fate::Outcome::cancelled)
    return "";
  return *status.next == fate::Outcome::leased ? ", and leased again" : "; it will be emitted again";
}

/// What each queue did with the token; for one queue the deliveries, and what other queues did.
std::string what_became_of(const audit::TokenReport& report, Moment now) {
  std::string text;
  for (const auto& of_queue : report.by_queue) {
    text += fmt::format("{}in queue {}, {}", text.empty() ? "" : "; ", shown_text(of_queue.queue),
                        what_became_of(of_queue, now));
  }
  if (!text.empty()) return text;
  for (const auto& delivery : report.deliveries)
    text += (text.empty() ? "" : "; ") + token_delivery_text(delivery, now);
  if (!report.has_status()) return text;
  return text + (text.empty() ? "" : "; ") + outcome_sentence(report) + next_text(report.status);
}

/// ` to ada@example.org`: of a message its recipient; of an account where its mail went, if that is not its
/// address now.
std::string recipient_text(const audit::TokenReport& report) {
  const auto& own = report.token.account.email;
  const auto address = token_address(report);
  return address.empty() || (!report.token.message && address == own) ? "" : " to " + shown_text(address);
}

std::string state_text(const audit::TokenFacts& token, Moment now) {
  if (!token.exists) return "no longer in the database";
  if (token.consumed_at && *token.consumed_at > now)
    return fmt::format("consumed, recorded as {}", moment_text(*token.consumed_at));
  if (token.consumed_at) {
    const auto* how = token.has_link ? "consumed" : "cancelled";
    return fmt::format("{} {} ago", token.consumed_as.empty() ? how : token.consumed_as,
                       coarse(now - *token.consumed_at));
  }
  if (token.expires_at <= now) {
    const auto* revoked = audit::revocation_of(token);
    const auto by = revoked == nullptr ? std::string() : " by " + shown_text(revoked->actor);
    return fmt::format("{} {} ago{}{}", revoked == nullptr ? "expired" : "revoked",
                       coarse(now - token.expires_at), by, token.has_link ? ", not consumed" : "");
  }
  const auto left = coarse(token.expires_at - now);
  if (token.state == "due" && !token.has_link) return "expires in " + left;
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

std::string where_and_actor(const queue::BatchRecord& batch, const std::string& collector) {
  const auto again =
      batch.attempts > 1 ? fmt::format(" at attempt {}", with_thousands(batch.attempts)) : std::string();
  return fmt::format("in batch {} by {}{}", batch.id, collector, again);
}

std::string token_delivery_text(const audit::TokenDelivery& status, Moment now) {
  const auto queue =
      status.is_of_other_queue ? fmt::format("in queue {}, ", shown_text(status.delivery.queue)) : "";
  if (status.accepted > 0) return queue + accepted_text(status) + following_text(status, now);
  if (!is_deferred(status.decisive)) return queue + ended_text(status) + following_text(status, now);
  return fmt::format("{}{}: deferred, {}{}", queue, status.maybe ? "perhaps accepted" : "not accepted yet",
                     again_text(status, now), prefixed(": ", answer_text(status.decisive)));
}

std::string token_address(const audit::TokenReport& report) {
  for (const auto& delivery : report.deliveries)
    if (!delivery.decisive.address.empty()) return delivery.decisive.address;
  return report.token.account.email;
}

std::string status_text(const audit::TokenReport& report, Moment now) {
  const auto& token = report.token;
  const auto action = token.action.empty() ? "" : fmt::format(" ({})", shown_text(token.action));
  const auto other = token.id_was_anothers ? "; another token had its id before" : "";
  return fmt::format("token {}{}{}: {}; {}{}", token.id, action, recipient_text(report),
                     what_became_of(report, now), state_text(token, now), other);
}

std::string batch_text(const queue::BatchRecord& batch) {
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
  if (!batch.key.empty()) text += ", signed with key " + shown_text(batch.key);
  return skipped.empty() ? text : text + "; skipped: " + skipped;
}

}  // namespace mailroom::cmd
