// queue drop: shows what is due in a queue and which consumers serve it, asks, and drops it.

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/queue/queue_action.hpp"
#include "cmd/queue/queue_report.hpp"
#include "cmd/terminal/context.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

/// What a drop would do.
struct DropPlan {
  ListedQueue listed;
  std::int64_t open = 0;  ///< batches that are leased
  std::int64_t deferred = 0;
  std::vector<std::string> consumers{};  ///< that are connected, and may serve the queue
  bool is_configured = false;
  std::vector<queue::QueueRecord> others{};
};

DropPlan read_drop_plan(db::Connection& connection, const queue::QueueCatalogue& catalogue,
                        const std::string& name, const config::Settings& settings) {
  const auto status = status::read_queue_status(connection, name);
  DropPlan plan{.listed = {.queue = queue::require_queue(catalogue, name),
                           .pending = status.pending.total(),
                           .is_estimate = status.pending.estimated},
                .open = static_cast<std::int64_t>(status.open_batches.size()),
                .deferred = status.deliveries.deferred.tokens};
  for (const auto& collector : status.collectors) {
    if (!collector.queue || *collector.queue == name) plan.consumers.push_back(collector.session.application);
  }
  plan.is_configured = std::find(settings.collect.queues.begin(), settings.collect.queues.end(), name) !=
                       settings.collect.queues.end();
  for (const auto& queue : catalogue.queues) {
    if (queue.name != name) plan.others.push_back(queue);
  }
  return plan;
}

std::string render_drop_plan(const DropPlan& plan, const queue::Actions& known) {
  const auto name = shown_text(plan.listed.queue.name);
  auto text =
      fmt::format("queue {}: drop, with its cursor at {}\n", name, with_thousands(plan.listed.queue.cursor));
  text +=
      plan.listed.pending == 0
          ? "No token is due in it.\n"
          : fmt::format("{}{} due in it: nobody is mailed for {} by this queue.\n",
                        plan.listed.is_estimate ? "About " : "",
                        counted(plan.listed.pending, "token") + (plan.listed.pending == 1 ? " is" : " are"),
                        plan.listed.pending == 1 ? "it" : "them");
  if (plan.deferred > 0)
    text += fmt::format("{} of them wait for another attempt, and are cancelled.\n",
                        with_thousands(plan.deferred));
  if (plan.open > 0) {
    const bool one = plan.open == 1;
    text += fmt::format("warning: {} batch{} in flight; what becomes of {} is not recorded\n", plan.open,
                        one ? " is" : "es are", one ? "it" : "them");
  }
  for (const auto& consumer : plan.consumers)
    text +=
        fmt::format("warning: {} is connected, and stops if it serves this queue\n", shown_text(consumer));
  if (plan.is_configured) text += fmt::format("warning: collect.queue names {}\n", name);
  return text + untaken_note(plan.others, known);
}

std::string drop_json(const DropPlan& plan, const queue::QueueCatalogue& catalogue, bool carried_out) {
  const nlohmann::ordered_json object{
      {"queue", queue_json(plan.listed, catalogue)},
      {"deferred", plan.deferred},
      {"open_batches", plan.open},
      {"consumers", plan.consumers},
      {"configured", plan.is_configured},
      {"untaken_actions", queue::untaken_actions(plan.others, catalogue.actions)},
      {"carried_out", carried_out}};
  return json_text(object) + "\n";
}

}  // namespace

ExitCode queue_drop(const QueueOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("queue");
  const auto waits = context.watch_waits(*connection, "queue");
  const auto catalogue = queue::read_queues(*connection);
  queue::require_queue(catalogue, options.name);
  const auto plan = read_drop_plan(*connection, catalogue, options.name, context.settings());
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_drop_plan(plan, catalogue.actions));
  if (!options.dry_run) {
    confirm(context,
            fmt::format("drop queue {} with {}?", options.name, counted(plan.listed.pending, "due token")));
    queue::drop_queue(*connection, options.name, queue::operator_author(*connection, options.reason),
                      context.settings().collect.channel);
  }
  context.print(json              ? drop_json(plan, catalogue, !options.dry_run)
                : options.dry_run ? "dry run: nothing was changed\n"
                                  : fmt::format("done: queue {} is dropped\n", shown_text(options.name)));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
