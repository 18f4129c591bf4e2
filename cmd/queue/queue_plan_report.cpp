// The text and the JSON of a plan.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/queue/queue_report.hpp"

namespace mailroom::cmd {
namespace {

using PlanJson = nlohmann::ordered_json;

/// One change: of a property, or the creation of a queue or budget.
struct PlanLine {
  bool is_budget = false;
  std::string name;
  std::string property;               ///< empty for a creation
  std::optional<std::string> before;  ///< nullopt for a creation
  std::string after;
};

std::string begins_text(const queue::QueueStart& start) {
  return start.like.empty() ? fmt::format("after token {}", with_thousands(start.cursor))
                            : fmt::format("at the cursor of queue {}, now {}", shown_text(start.like),
                                          with_thousands(start.cursor));
}

void add_budget_lines(std::vector<PlanLine>& lines, const queue::BudgetChange& change) {
  if (!change.before) {
    lines.push_back({true, change.name, "", std::nullopt, queue::paced_text(change.after)});
  } else {
    lines.push_back(
        {true, change.name, "rate", queue::paced_text(*change.before), queue::paced_text(change.after)});
  }
}

void add_queue_lines(std::vector<PlanLine>& lines, const queue::QueueChange& change) {
  if (change.start) lines.push_back({false, change.name, "", std::nullopt, begins_text(*change.start)});
  for (const auto& property : queue::changes_between(change.before, change.after)) {
    const auto before = change.start ? std::nullopt : std::optional(property.before);
    lines.push_back({false, change.name, property.name, before, property.after});
  }
}

std::vector<PlanLine> lines_of(const queue::QueuePlan& plan) {
  std::vector<PlanLine> lines;
  for (const auto& change : plan.budgets)
    add_budget_lines(lines, change);
  for (const auto& change : plan.queues)
    add_queue_lines(lines, change);
  return lines;
}

std::string line_text(const PlanLine& line) {
  const auto subject = fmt::format("{} {}", line.is_budget ? "budget" : "queue", shown_text(line.name));
  if (line.property.empty()) {
    return line.is_budget ? fmt::format("{}: create with {}", subject, line.after)
                          : fmt::format("{}: create; it begins {}", subject, line.after);
  }
  if (!line.before) return fmt::format("{}: {} {}", subject, line.property, shown_text(line.after));
  return fmt::format("{}: {} from {} to {}", subject, line.property, shown_text(*line.before),
                     shown_text(line.after));
}

std::string names_text(const std::vector<std::string>& names) {
  return shown_text(fmt::format("queue{} {}", names.size() == 1 ? "" : "s",
                                joined(names, names.size() == 2 ? " and " : ", ")));
}

std::string due_text(std::int64_t due, const std::string& action) {
  return counted(due, "due " + action + (action.empty() ? "token" : " token"));
}

/// Emits with `queue` the tokens of an action that no queue emits by itself from now on.
std::string replay_command(const std::string& queue, const queue::QueueEffect& effect) {
  constexpr std::int64_t default_max = 1000;
  return fmt::format("  mailroom resend{} --queue {} --action {}{}\n",
                     effect.after == 0 ? std::string() : fmt::format(" token:{}-", effect.after + 1),
                     shell_word(queue), queue::short_action_name(effect.action),
                     effect.due <= default_max ? "" : fmt::format(" --max {}", effect.due));
}

std::string begins_effect_text(const queue::QueueEffect& effect) {
  auto text = fmt::format("Queue {} emits {} at once", shown_text(effect.queue), due_text(effect.due, ""));
  if (effect.emitted_before > 0)
    text += fmt::format(", {} of them again: the same people are mailed again",
                        with_thousands(effect.emitted_before));
  return text + ".\n";
}

std::string doubled_text(const queue::QueueEffect& effect) {
  return fmt::format("{} {} {} tokens too, and queue {} emits each as well: each person is mailed {}.\n",
                     "Q" + names_text(effect.others).substr(1), effect.others.size() == 1 ? "takes" : "take",
                     queue::short_action_name(effect.action), shown_text(effect.queue),
                     queue::times_text(effect.others.size() + 1));
}

std::string taken_text(const queue::QueueEffect& effect) {
  if (effect.due == 0) return "";
  return fmt::format("{} below the cursor of queue {} {} not emitted by it. This command emits them:\n",
                     due_text(effect.due, queue::short_action_name(effect.action)), shown_text(effect.queue),
                     effect.due == 1 ? "is" : "are") +
         replay_command(effect.queue, effect);
}

std::string released_text(const queue::QueueEffect& effect) {
  const auto action = queue::short_action_name(effect.action);
  auto text = fmt::format("Queue {} emits no {} tokens from now on", shown_text(effect.queue), action);
  text += effect.others.empty() ? ".\n"
                                : fmt::format("; {} {}.\n", names_text(effect.others),
                                              effect.others.size() == 1 ? "does" : "do");
  if (effect.due == 0) return text;
  text += fmt::format("{} above its cursor {} emitted by no queue.", due_text(effect.due, action),
                      effect.due == 1 ? "is" : "are");
  if (effect.others.empty()) return text + "\n";
  return text + " This command emits them:\n" + replay_command(effect.others.front(), effect);
}

std::string effect_text(const queue::QueueEffect& effect) {
  switch (effect.kind) {
    case queue::QueueEffect::Kind::begins:
      return begins_effect_text(effect);
    case queue::QueueEffect::Kind::taken:
      return taken_text(effect);
    case queue::QueueEffect::Kind::released:
      return released_text(effect);
    case queue::QueueEffect::Kind::doubled:
      return doubled_text(effect);
  }
  return "";
}

/// Names the queues that a consumer has to serve now: the new ones, and those from which they take over.
std::string consumers_note(const queue::QueuePlan& plan) {
  std::vector<std::string> created;
  std::vector<std::string> kept;
  for (const auto& change : plan.queues) {
    if (change.start) {
      created.push_back(change.name);
    } else if (change.changes_actions()) {
      kept.push_back(change.name);
    }
  }
  if (created.empty()) return "";
  const auto served = fmt::format("{}{}{}", joined(created, ","), kept.empty() ? "" : ",", joined(kept, ","));
  const auto names = names_text(created);
  return kept.empty() ? fmt::format("No consumer serves {} yet: start one with --queue {}.\n", names,
                                    shell_word(served))
                      : fmt::format("No consumer serves {} yet: restart the sender with --queue {}.\n", names,
                                    shell_word(served));
}

std::string_view kind_name(queue::QueueEffect::Kind kind) {
  constexpr std::string_view names[] = {"begins", "taken", "released", "doubled"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace

std::string render_plan(const queue::QueuePlan& plan, const std::vector<queue::QueueEffect>& effects,
                        const queue::QueueCatalogue& catalogue) {
  std::string text;
  for (const auto& line : lines_of(plan))
    text += line_text(line) + "\n";
  std::string notes;
  for (const auto& change : plan.budgets) {
    const auto sharers = catalogue.sharers_of(change.name);
    if (change.before && !sharers.empty())
      notes += fmt::format("Budget {} is that of {}.\n", shown_text(change.name), names_text(sharers));
  }
  for (const auto& effect : effects)
    notes += effect_text(effect);
  notes += consumers_note(plan);
  notes += untaken_note(queue::queues_after(plan, catalogue), catalogue.actions);
  return notes.empty() ? text : text + "\n" + notes;
}

nlohmann::ordered_json plan_json(const queue::QueuePlan& plan, const std::vector<queue::QueueEffect>& effects,
                                 const queue::QueueCatalogue& catalogue) {
  PlanJson object{{"changes", PlanJson::array()}, {"effects", PlanJson::array()}};
  for (const auto& line : lines_of(plan)) {
    object["changes"].push_back({{line.is_budget ? "budget" : "queue", line.name},
                                 {"change", line.property.empty() ? "create" : line.property},
                                 {"before", line.before ? PlanJson(*line.before) : PlanJson(nullptr)},
                                 {"after", line.after}});
  }
  for (const auto& effect : effects) {
    object["effects"].push_back({{"effect", kind_name(effect.kind)},
                                 {"queue", effect.queue},
                                 {"action", text_or_null<PlanJson>(effect.action)},
                                 {"due", effect.due},
                                 {"emitted_before", effect.emitted_before},
                                 {"others", effect.others}});
  }
  object["untaken_actions"] = queue::untaken_actions(queue::queues_after(plan, catalogue), catalogue.actions);
  return object;
}

}  // namespace mailroom::cmd
