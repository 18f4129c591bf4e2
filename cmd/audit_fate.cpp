#include <chrono>
#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/moment.hpp"
#include "base/text.hpp"
#include "cmd/audit_words.hpp"

namespace mailroom {
namespace {

/// Two units at most, since nobody asks for the seconds of a week.
std::string coarse(std::int64_t seconds) {
  constexpr std::int64_t hour = 3600;
  constexpr std::int64_t day = 24 * hour;
  constexpr std::int64_t century = 36'525 * day;
  if (seconds >= century) return "100 years or more";
  const auto unit = seconds >= day ? hour : seconds >= hour ? 60 : 1;
  return format_duration(std::chrono::seconds(seconds - seconds % unit));
}

std::string time_of(std::int64_t microseconds) {
  return moment_text(microseconds / microseconds_a_second);
}

std::string times_text(std::int64_t count) {
  return count == 1 ? "once" : fmt::format("{} times", with_thousands(count));
}

bool records_are_complete(const TokenFacts& token) {
  return token.queues.empty() || token.queues.front().records_complete;
}

std::string handed_on_text(const TokenStory& story) {
  const auto& fate = story.fate;
  const auto more = records_are_complete(story.token) ? "" : " or more";
  const auto time = time_of(*fate.batch->emitted_at);
  auto text = fate.times == 1 && fate.maybe == 0
                  ? fmt::format("handed on once{}, {} {}", more, time, where_and_who(*fate.batch))
                  : fmt::format("handed on {}{}, last {} {}", times_text(fate.times), more, time,
                                where_and_who(*fate.batch));
  if (fate.maybe > 0) text += fmt::format(", and maybe {} more", times_text(fate.maybe));
  return text;
}

std::string maybe_text(const TokenStory& story) {
  const auto& batch = *story.fate.batch;
  if (contains(batch.unsure, story.token.id))
    return fmt::format("perhaps handed on, {} {}, unless that was another token with its id",
                       time_of(*batch.emitted_at), where_and_who(batch));
  const auto when = fmt::format("{} {}", time_of(*batch.emitted_at), where_and_who(batch));
  if (contains(batch.left_out, story.token.id))
    return fmt::format("perhaps handed on: {}, left out of its line by then, but maybe at an earlier one",
                       when);
  return fmt::format("probably handed on, {}: {} of its {} tokens were", when, with_thousands(batch.emitted),
                     with_thousands(batch.size));
}

std::string passed_over_text(const TokenFate& fate) {
  return fmt::format("not handed on: passed over at {}, {}", time_of(fate.passing->at),
                     passing_reason_text(fate.reason, fate.reason_certain));
}

std::string left_out_text(const TokenFate& fate) {
  return fmt::format("not handed on: {}, but left out when its line was written, {}, {}",
                     where_and_who(*fate.batch), time_of(*fate.batch->emitted_at),
                     passing_reason_text(fate.reason, fate.reason_certain));
}

std::string outcome_text(const TokenStory& story) {
  const auto& fate = story.fate;
  switch (fate.outcome) {
    case Outcome::handed_on:
      return handed_on_text(story);
    case Outcome::maybe_handed_on:
      return maybe_text(story);
    case Outcome::in_open_batch:
      return fmt::format("handed out {} {}, not acknowledged yet", time_of(fate.batch->claimed_at),
                         where_and_who(*fate.batch));
    case Outcome::set_aside:
      return fmt::format("not acknowledged: batch {} was set aside {} after {} attempts", fate.batch->id,
                         time_of(*fate.batch->set_aside_at), with_thousands(fate.batch->attempts));
    case Outcome::left_out:
      return left_out_text(fate);
    case Outcome::waiting:
      return fmt::format("not handed on yet: it waits in queue {}", shown_text(fate.queue));
    case Outcome::waiting_not_due:
      return fmt::format("not handed on: queue {} has not reached it, and will pass it over",
                         shown_text(fate.queue));
    case Outcome::waiting_again:
      return fmt::format("not handed on yet: queue {} takes it up late, by a replay or a late commit",
                         shown_text(fate.queue));
    case Outcome::passed_over:
      return passed_over_text(fate);
    case Outcome::passed_by:
      return fmt::format("not handed on: the cursor was moved past it {} by {}", time_of(fate.operation->at),
                         shown_text(fate.operation->actor));
    case Outcome::missed:
      return fmt::format(
          "not handed on: made after queue {} had passed its id; mailroom rewind-cursor --fix-sequence "
          "emits it",
          shown_text(fate.queue));
    case Outcome::not_recorded:
      return "not known to be handed on: there are no records of its time";
    case Outcome::unexplained:
      break;
  }
  return "not handed on: the cursor is past it, and no record says why";
}

std::string other_text(const TokenFacts& token) {
  return token.id_was_anothers ? "; its id was another token's before" : "";
}

std::string next_text(const TokenFate& fate) {
  if (!fate.next) return "";
  return *fate.next == Outcome::in_open_batch ? ", and handed out again" : ", and to be handed on again";
}

std::string state_text(const TokenFacts& token, std::int64_t now) {
  if (!token.exists) return "not in the database (any more)";
  if (token.consumed_at && *token.consumed_at > now)
    return fmt::format("consumed, recorded as {}", moment_text(*token.consumed_at));
  if (token.consumed_at)
    return fmt::format("consumed {} ago", coarse(now - bounded_moment(*token.consumed_at)));
  if (token.expires_at <= now)
    return fmt::format("expired {} ago, not consumed", coarse(now - bounded_moment(token.expires_at)));
  const auto left = coarse(bounded_moment(token.expires_at) - now);
  if (token.state == "due") return fmt::format("not consumed, usable for another {}", left);
  return fmt::format("not usable: the account is {}; expires in {}", shown_text(token.status), left);
}

}  // namespace

std::string tokens_text(std::int64_t count) {
  return with_thousands(count) + (count == 1 ? " token" : " tokens");
}

std::string skipped_text(const BatchRecord& batch) {
  std::string text;
  const auto add = [&](int count, const char* reason) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(count), reason);
  };
  add(batch.skipped_expired, "expired");
  add(batch.skipped_consumed, "consumed");
  add(batch.skipped_status, "of the wrong status");
  add(batch.skipped_invalid, "invalid");
  return text;
}

std::string passing_reason_text(const std::string& reason, bool certain) {
  if (reason.empty()) return "as it was not due";
  return fmt::format("{}as {}", certain ? "" : "probably ",
                     reason == "wrong status" ? "its account had the wrong status" : shown_text(reason));
}

std::string where_and_who(const BatchRecord& batch) {
  const auto again =
      batch.attempts > 1 ? fmt::format(" at attempt {}", with_thousands(batch.attempts)) : std::string();
  return fmt::format("in batch {} by {}{}", batch.id, shown_text(batch.claimed_by), again);
}

std::string fate_text(const TokenStory& story, std::int64_t now) {
  const auto& token = story.token;
  const auto action = token.action.empty() ? "" : fmt::format(" ({})", shown_text(token.action));
  return fmt::format("token {}{}: {}{}; {}{}", token.id, action, outcome_text(story), next_text(story.fate),
                     state_text(token, now), other_text(token));
}

std::string batch_text(const BatchRecord& batch) {
  if (batch.is_mere_state()) {
    return fmt::format("batch {} of queue {}: no tokens, only where the queue stood {}, by {}", batch.id,
                       shown_text(batch.queue), time_of(batch.claimed_at), shown_text(batch.claimed_by));
  }
  auto text =
      fmt::format("batch {} of queue {}: {}, ", batch.id, shown_text(batch.queue), tokens_text(batch.size));
  const auto skipped = skipped_text(batch);
  if (batch.emitted_at) {
    text += fmt::format("{} handed on {}", with_thousands(batch.emitted), time_of(*batch.emitted_at));
  } else if (batch.set_aside_at) {
    text += fmt::format("set aside {}", time_of(*batch.set_aside_at));
  } else {
    text += fmt::format("handed out {}, not acknowledged yet", time_of(batch.claimed_at));
  }
  text += fmt::format(", by {}, handed out {}", shown_text(batch.claimed_by), times_text(batch.attempts));
  return skipped.empty() ? text : text + "; passed over: " + skipped;
}

}  // namespace mailroom
