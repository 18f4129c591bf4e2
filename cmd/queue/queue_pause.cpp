// pause and resume.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cmd/queue/queue_action.hpp"

namespace mailroom::cmd {
namespace {

std::string pause_result(const std::string& name, bool pause, bool has_changed) {
  if (!has_changed) return fmt::format("queue {} was {}\n", name, pause ? "paused already" : "not paused");
  return pause ? fmt::format("queue {} is paused; mailroom queue resume ends that\n", name)
               : fmt::format("queue {} is resumed\n", name);
}

ExitCode run_pause(const QueueOptions& options, Context& context, bool pause) {
  const auto connection = context.connect_to_schema("queue");
  const auto waits = context.watch_waits(*connection, "queue");
  queue::require_queue(queue::read_queues(*connection), options.name);
  const auto has_changed = queue::pause_queue(*connection, options.name, pause,
                                              queue::operator_author(*connection, options.reason),
                                              context.settings().collect.channel);
  if (context.global().output == OutputFormat::json) {
    const nlohmann::ordered_json object{{"queue", options.name}, {"paused", pause}, {"changed", has_changed}};
    context.print(json_text(object) + "\n");
  } else {
    context.print(pause_result(shown_text(options.name), pause, has_changed));
  }
  return ExitCode::done;
}

}  // namespace

ExitCode queue_pause(const QueueOptions& options, Context& context) {
  return run_pause(options, context, true);
}

ExitCode queue_resume(const QueueOptions& options, Context& context) {
  return run_pause(options, context, false);
}

}  // namespace mailroom::cmd
