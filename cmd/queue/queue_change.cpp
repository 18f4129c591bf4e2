// create, set and apply: the commands with a plan.

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/queue/queue_action.hpp"
#include "cmd/queue/queue_report.hpp"
#include "cmd/terminal/context.hpp"
#include "config/parse_value.hpp"
#include "queue/queue_setting.hpp"
#include "replay/rewind.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::string_view like_prefix = "queue:";

/// The budget that --budget names, or the queue has, with the options of budgets.
std::optional<queue::BudgetChange> budget_change(const QueueOptions& options,
                                                 const queue::QueueProperties& properties,
                                                 const queue::QueueCatalogue& catalogue) {
  if (options.budget_values.empty()) return std::nullopt;
  if (properties.budget.empty()) {
    throw Error(ExitCode::usage, fmt::format("{} needs a budget", options.budget_values.front().origin.where),
                "name it with --budget; --rate sets the rate of the queue alone");
  }
  const auto* budget = catalogue.find_budget(properties.budget);
  const auto before = budget != nullptr ? std::optional(budget->paced) : std::nullopt;
  const auto after = queue::changed(before, options.budget_values);
  if (!after) {
    throw Error(ExitCode::usage, "a budget without a rate limits nothing",
                "give --budget-rate a rate such as 0.38/s, or --budget none");
  }
  return queue::BudgetChange{.name = properties.budget, .before = before, .after = *after};
}

queue::QueuePlan plan_of(const QueueOptions& options, queue::QueueChange change,
                         const queue::QueueCatalogue& catalogue) {
  queue::QueuePlan plan;
  if (auto budget = budget_change(options, change.after, catalogue))
    plan.budgets.push_back(std::move(*budget));
  plan.queues.push_back(std::move(change));
  return queue::checked(std::move(plan), catalogue);
}

queue::QueuePlan plan_of_file(const queue::QueueFile& file, db::Connection& connection,
                              const queue::QueueCatalogue& catalogue) {
  queue::QueuePlan plan;
  for (const auto& entry : file.budgets) {
    const auto* budget = catalogue.find_budget(entry.name);
    const auto after = queue::changed(std::nullopt, entry.values);
    if (!after)
      throw Error(ExitCode::configuration, fmt::format("{}: budget {} has no rate", entry.place, entry.name));
    const auto before = budget != nullptr ? std::optional(budget->paced) : std::nullopt;
    plan.budgets.push_back({.name = entry.name, .before = before, .after = *after});
  }
  for (const auto& entry : file.queues) {
    const auto* queue = catalogue.find_queue(entry.name);
    queue::QueueChange change{
        .name = entry.name,
        .after = queue::changed(queue::QueueProperties(), entry.values, &catalogue.actions)};
    if (queue != nullptr) {
      change.before = queue->properties;
    } else {
      const config::SettingValue end{.key = "from", .text = "end", .items = {}, .origin = {}};
      change.start = read_start(connection, entry.from.value_or(end), catalogue);
    }
    plan.queues.push_back(std::move(change));
  }
  return queue::checked(std::move(plan), catalogue);
}

/// Reports wrong values before connecting: of those of the options only the actions depend on the database.
void check_values(const QueueOptions& options) {
  queue::QueueProperties properties{.rate = queue::PacedRate{{1, Milliseconds(1)}}};
  queue::changed(properties, options.values, nullptr);
  queue::changed(properties.rate, options.budget_values);
  queue::parse_queue_name(
      {.key = "name", .text = options.name, .items = {}, .origin = {config::OriginKind::flag, "NAME"}});
}

std::string left_alone(const queue::QueueFile& file, const queue::QueueCatalogue& catalogue) {
  std::vector<std::string> names;
  for (const auto& queue : catalogue.queues) {
    if (std::none_of(file.queues.begin(), file.queues.end(),
                     [&](const auto& entry) { return entry.name == queue.name; }))
      names.push_back(queue.name);
  }
  if (names.empty()) return "";
  return fmt::format("not in the file, and left as {}: {}\n", names.size() == 1 ? "it is" : "they are",
                     shown_text(joined(names, ", ")));
}

/// Where a new queue begins; `text` is the value of --from.
queue::QueueStart start_of(db::Connection& connection, const std::string& text,
                           const queue::QueueCatalogue& catalogue) {
  return read_start(
      connection, {.key = "from", .text = text, .items = {}, .origin = {config::OriginKind::flag, "--from"}},
      catalogue);
}

std::string question(const queue::QueuePlan& plan, const std::vector<queue::QueueEffect>& effects) {
  std::vector<std::string> names;
  for (const auto& change : plan.queues) {
    const auto mails = [&](const auto& effect) {
      return effect.queue == change.name && (effect.kind == queue::QueueEffect::Kind::begins ||
                                             effect.kind == queue::QueueEffect::Kind::doubled);
    };
    const bool is_new = change.start.has_value();
    if (is_new ? std::any_of(effects.begin(), effects.end(), mails) : change.changes_actions())
      names.push_back(change.name);
  }
  return fmt::format("change who is mailed by queue {}?", joined(names, " and "));
}

}  // namespace

queue::QueueStart read_start(db::Connection& connection, const config::SettingValue& value,
                             const queue::QueueCatalogue& catalogue) {
  if (value.text.starts_with(like_prefix)) {
    const auto name = value.text.substr(like_prefix.size());
    const auto& queue = queue::require_queue(catalogue, name);
    return {.cursor = queue.cursor, .like = queue.name};
  }
  replay::RewindTarget target{.kind = replay::RewindTarget::Kind::end};
  if (value.text == "start") {
    target.kind = replay::RewindTarget::Kind::start;
  } else if (value.text != "end") {
    const auto moment = parse_moment(value.text, connection.server_time());
    if (!moment)
      config::refuse(value, "start, end, a time or queue:NAME",
                     "a time is 2026-11-21T09:30 (UTC), or 10m for ten minutes ago");
    target = {.kind = replay::RewindTarget::Kind::time, .time = *moment};
  }
  return {.cursor = replay::starting_cursor(connection, target)};
}

ExitCode run_plan(const QueueOptions& options, Context& context, db::Connection& connection,
                  const queue::QueuePlan& plan, const queue::QueueCatalogue& catalogue,
                  const std::string& note) {
  const auto effects = queue::effects_of(connection, plan, catalogue);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_plan(plan, effects, catalogue) + note);
  const bool stays = options.dry_run || plan.changes_nothing();
  if (!stays) {
    if (queue::changes_who_is_mailed(plan, effects)) confirm(context, question(plan, effects));
    queue::carry_out(connection, plan, queue::operator_author(connection, options.reason),
                     context.settings().collect.channel);
  }
  if (json) {
    auto object = plan_json(plan, effects, catalogue);
    object["carried_out"] = !stays;
    context.print(json_text(object) + "\n");
  } else {
    context.print(!stays ? "done\n" : options.dry_run ? "dry run: nothing was changed\n" : "nothing to do\n");
  }
  return ExitCode::done;
}

ExitCode queue_create(const QueueOptions& options, Context& context) {
  check_values(options);
  const auto connection = context.connect_to_schema("queue");
  const auto waits = context.watch_waits(*connection, "queue");
  const auto catalogue = queue::read_queues(*connection);
  queue::QueueChange change{
      .name = options.name,
      .after = queue::changed(queue::QueueProperties(), options.values, &catalogue.actions)};
  change.start = start_of(*connection, options.from.empty() ? "end" : options.from, catalogue);
  const bool exists = catalogue.find_queue(options.name) != nullptr;
  const auto released = options.copy || exists ? std::nullopt : queue::take_over(change, catalogue);
  // With the tokens that wait.
  if (released && options.from.empty())
    change.start = start_of(*connection, std::string(like_prefix) + released->name, catalogue);
  auto plan = plan_of(options, std::move(change), catalogue);
  if (released) plan.queues.push_back(*released);
  return run_plan(options, context, *connection, queue::checked(std::move(plan), catalogue), catalogue);
}

ExitCode queue_set(const QueueOptions& options, Context& context) {
  check_values(options);
  const auto connection = context.connect_to_schema("queue");
  const auto waits = context.watch_waits(*connection, "queue");
  const auto catalogue = queue::read_queues(*connection);
  const auto& queue = queue::require_queue(catalogue, options.name);
  queue::QueueChange change{.name = queue.name,
                            .before = queue.properties,
                            .after = queue::changed(queue.properties, options.values, &catalogue.actions)};
  return run_plan(options, context, *connection, plan_of(options, std::move(change), catalogue), catalogue);
}

ExitCode queue_apply(const QueueOptions& options, Context& context) {
  const auto file = queue::read_queue_file(options.file);
  const auto connection = context.connect_to_schema("queue");
  const auto waits = context.watch_waits(*connection, "queue");
  const auto catalogue = queue::read_queues(*connection);
  return run_plan(options, context, *connection, plan_of_file(file, *connection, catalogue), catalogue,
                  left_alone(file, catalogue));
}

}  // namespace mailroom::cmd
