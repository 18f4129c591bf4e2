// Says what a plan means: who is mailed again, what stays expired, what is skipped for good.

#include "cmd/rewind_cursor/rewind_report.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/resend/resend_report.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

std::string cursor_text(const replay::RewindPlan& plan) {
  if (plan.changes_nothing()) return fmt::format("stays at {}", with_thousands(plan.cursor_before));
  const auto ids = plan.range_to - plan.range_from;
  return fmt::format("{} -> {} ({} over {})", with_thousands(plan.cursor_before),
                     with_thousands(plan.cursor_after), plan.is_forward() ? "forward" : "back",
                     counted(ids, "id"));
}

void add_tally(TextTable& table, const std::string& label, const replay::TokenTally& tally) {
  table.add({label, with_thousands(tally.count), with_thousands(tally.emitted_before)});
}

std::string render_tallies(const replay::RewindPlan& plan) {
  TextTable table(
      {{"tokens"}, {"count", TextTable::Align::right}, {"emitted before", TextTable::Align::right}});
  add_tally(table, "deliverable", plan.deliverable);
  if (plan.revived.count > 0) add_tally(table, "expired, to be revived", plan.revived);
  add_tally(table, "expired", plan.expired);
  add_tally(table, "consumed", plan.consumed);
  add_tally(table, "account in the wrong status", plan.wrong_status);
  return table.render(80);
}

std::string forward_note(const replay::RewindPlan& plan) {
  return plan.deliverable.count == 0 ? std::string("No deliverable token is skipped.\n")
                                     : fmt::format("{} that could be emitted would be skipped for good.\n",
                                                   counted(plan.deliverable.count, "token"));
}

std::string deferred_note(const replay::RewindPlan& plan) {
  if (plan.deferred == 0) return "";
  const bool one = plan.deferred == 1;
  return fmt::format("{} {} for another attempt, and {} not skipped: {} below the cursor.\n",
                     counted(plan.deferred, "deferred token"), one ? "waits" : "wait", one ? "is" : "are",
                     one ? "it is" : "they are");
}

std::string replay_note(const replay::RewindPlan& plan) {
  if (plan.replayed() == 0) return "No token would be emitted.\n";
  auto before = plan.deliverable.before;
  before += plan.revived.before;
  return fmt::format("{} would be emitted, {} with a Message-ID and a Date of its own.\n{}",
                     counted(plan.replayed(), "token"), plan.replayed() == 1 ? "in a mail" : "each in a mail",
                     sent_before_text(before, plan.replayed()));
}

std::string limit_note(const replay::RewindRequest& request, const replay::RewindPlan& plan) {
  if (plan.replayed() <= request.max_replay) return "";
  return fmt::format("That is more than --max-replay {} allows.\n", with_thousands(request.max_replay));
}

std::string sequence_note(const replay::RewindPlan& plan) {
  if (plan.newest >= plan.cursor_before) return "";
  return fmt::format(
      "The token sequence is at {}, behind the cursor: tokens were truncated or restored. "
      "--fix-sequence instead emits the tokens created since, and no others.\n",
      with_thousands(plan.newest));
}

nlohmann::ordered_json tally_json(const replay::TokenTally& tally) {
  return {{"count", tally.count},
          {"emitted_before", tally.emitted_before},
          {"accepted_before", tally.before.accepted},
          {"maybe_accepted_before", tally.before.maybe}};
}

}  // namespace

std::string expired_note(std::int64_t expired, std::chrono::seconds extension) {
  if (expired == 0 || extension.count() > 0) return "";
  const bool one = expired == 1;
  return fmt::format("{} {} expired and {} skipped; --extend 15m gives {} 15 minutes more.\n",
                     counted(expired, "token"), one ? "has" : "have", one ? "is" : "are",
                     one ? "it" : "them");
}

std::string render_rewind_plan(const replay::RewindRequest& request, const replay::RewindPlan& plan) {
  auto text = fmt::format("queue:   {}\ncursor:  {}\n", shown_text(request.queue), cursor_text(plan));
  text += "\n" + render_tallies(plan) + "\n";
  text += plan.is_forward() ? forward_note(plan) : replay_note(plan);
  if (!plan.is_forward()) text += expired_note(plan.expired.count, request.extension);
  return text + deferred_note(plan) + limit_note(request, plan) + sequence_note(plan);
}

std::string rewind_question(const replay::RewindRequest& request, const replay::RewindPlan& plan) {
  if (plan.is_forward()) {
    return fmt::format("move the cursor of queue {} forward to {}, and skip {}?", request.queue,
                       plan.cursor_after, counted(plan.deliverable.count, "token"));
  }
  return fmt::format("move the cursor of queue {} back to {}, and emit {}?", request.queue, plan.cursor_after,
                     counted(plan.replayed(), "token"));
}

std::string render_rewind_result(const replay::RewindPlan& plan, std::int64_t replayed) {
  return fmt::format(
      "done: the cursor is at {}; {}\n", with_thousands(plan.cursor_after),
      plan.is_forward() ? "nothing is emitted again" : counted(replayed, "token") + " to be emitted");
}

std::string rewind_json(const replay::RewindRequest& request, const replay::RewindPlan& plan,
                        std::optional<std::int64_t> replayed) {
  nlohmann::ordered_json object{{"queue", request.queue},
                                {"cursor_before", plan.cursor_before},
                                {"cursor_after", plan.cursor_after},
                                {"range", {plan.range_from, plan.range_to}},
                                {"tokens",
                                 {{"deliverable", tally_json(plan.deliverable)},
                                  {"revived", tally_json(plan.revived)},
                                  {"expired", tally_json(plan.expired)},
                                  {"consumed", tally_json(plan.consumed)},
                                  {"wrong_status", tally_json(plan.wrong_status)}}},
                                {"deferred", plan.deferred},
                                {"max_replay", request.max_replay},
                                {"carried_out", replayed.has_value()},
                                {"replayed", nullptr}};
  if (replayed) object["replayed"] = *replayed;
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
