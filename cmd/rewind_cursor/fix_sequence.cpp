// Shows which sequences are behind and which tokens each queue has missed, asks, and fixes both.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/rewind_cursor/rewind_report.hpp"
#include "cmd/terminal/context.hpp"
#include "cmd/terminal/text_table.hpp"
#include "replay/sequence_fix.hpp"

namespace mailroom::cmd {
namespace {

std::string sequence_text(const replay::SequenceFix& fix) {
  if (fix.sequence_after == fix.sequence_before)
    return fmt::format("stays at {}, ahead of every cursor", with_thousands(fix.sequence_before));
  return fmt::format("{} -> {}", with_thousands(fix.sequence_before), with_thousands(fix.sequence_after));
}

std::string render_queues(const replay::SequenceFix& fix, std::size_t width) {
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"queue"},
                   {"cursor", right},
                   {"due", right},
                   {"revived", right},
                   {"expired", right},
                   {"wrong status", right}});
  for (const auto& missed : fix.queues) {
    table.add({shown_text(missed.queue), with_thousands(missed.cursor), with_thousands(missed.due),
               with_thousands(missed.revived), with_thousands(missed.expired),
               with_thousands(missed.wrong_status)});
  }
  return table.render(width);
}

/// Nothing if none is behind.
std::string render_others(const replay::SequenceFix& fix, std::size_t width) {
  if (fix.others.empty()) return {};
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"sequence"}, {"at", right}, {"set to", right}});
  for (const auto& sequence : fix.others)
    table.add(
        {shown_text(sequence.name), with_thousands(sequence.position), with_thousands(sequence.newest)});
  return fmt::format("other sequences behind their tables:\n{}\n", table.render(width));
}

std::string render_plan(const replay::SequenceFix& fix, std::chrono::seconds extension, std::size_t width) {
  const auto emitted = fix.to_emit();
  std::int64_t expired = 0;
  for (const auto& missed : fix.queues)
    expired += missed.expired;
  auto text = fmt::format("token sequence: {}\n\n{}missed tokens:\n{}\n", sequence_text(fix),
                          render_others(fix, width), render_queues(fix, width));
  text += emitted == 0 ? std::string("No due token was missed.\n")
                       : fmt::format(
                             "{} would be emitted: the cursor had passed {} before {} created.\n"
                             "No other token is emitted.\n",
                             counted(emitted, "token"), emitted == 1 ? "its id" : "their ids",
                             emitted == 1 ? "it was" : "they were");
  return text + expired_note(expired, extension);
}

std::string fix_json(const replay::SequenceFix& fix, bool carried_out) {
  auto queues = nlohmann::ordered_json::array();
  for (const auto& missed : fix.queues) {
    queues.push_back({{"queue", missed.queue},
                      {"cursor", missed.cursor},
                      {"missed",
                       {{"deliverable", missed.due},
                        {"revived", missed.revived},
                        {"expired", missed.expired},
                        {"wrong_status", missed.wrong_status}}}});
  }
  auto others = nlohmann::ordered_json::array();
  for (const auto& sequence : fix.others)
    others.push_back(
        {{"sequence", sequence.name}, {"before", sequence.position}, {"after", sequence.newest}});
  const nlohmann::ordered_json object{
      {"sequence_before", fix.sequence_before},
      {"sequence_after", fix.sequence_after},
      {"other_sequences", std::move(others)},
      {"queues", std::move(queues)},
      {"carried_out", carried_out},
      {"emitted", carried_out ? nlohmann::ordered_json(fix.to_emit()) : nlohmann::ordered_json(nullptr)}};
  return json_text(object) + "\n";
}

}  // namespace

ExitCode run_fix_sequence(std::chrono::seconds extension, const std::string& reason, bool dry_run,
                          Context& context) {
  const auto connection = context.connect_to_schema("rewind-cursor");
  const auto waits = context.watch_waits(*connection, "rewind-cursor");
  const auto plan = replay::plan_sequence_fix(*connection, extension);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_plan(plan, extension, context.out().width()));
  if (dry_run || plan.changes_nothing()) {
    context.print(json      ? fix_json(plan, false)
                  : dry_run ? "dry run: nothing was changed\n"
                            : "nothing to do\n");
    return ExitCode::done;
  }
  const auto others = static_cast<std::int64_t>(plan.others.size());
  const auto and_others =
      others == 0 ? std::string() : fmt::format(", {} ahead", counted(others, "other sequence"));
  confirm(context, fmt::format("set the token sequence to {}{} and emit {}?", plan.sequence_after, and_others,
                               counted(plan.to_emit(), "token")));
  const auto done =
      replay::carry_out_sequence_fix(*connection, extension, queue::operator_author(*connection, reason),
                                     context.settings().collect.channel);
  context.print(json ? fix_json(done, true)
                     : fmt::format("done: the token sequence is at {}{}; {} to be emitted\n",
                                   with_thousands(done.sequence_after), and_others,
                                   counted(done.to_emit(), "token")));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
