// What the commands of queue share: options, and the way from a plan to what is done.
#pragma once

#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "queue/queue_plan.hpp"
#include "queue/queue_setting.hpp"

namespace mailroom::cmd {

/// The options and operands of all commands of queue.
struct QueueOptions {
  std::string name;
  std::string file;
  std::vector<config::SettingValue> values;         ///< of the queue
  std::vector<config::SettingValue> budget_values;  ///< of its budget
  std::string from;
  bool copy = false;
  std::string reason;
  bool dry_run = false;
};

// The commands of queue; queue.cpp describes them.
ExitCode queue_list(const QueueOptions& options, Context& context);
ExitCode queue_show(const QueueOptions& options, Context& context);
ExitCode queue_create(const QueueOptions& options, Context& context);
ExitCode queue_set(const QueueOptions& options, Context& context);
ExitCode queue_pause(const QueueOptions& options, Context& context);
ExitCode queue_resume(const QueueOptions& options, Context& context);
ExitCode queue_drop(const QueueOptions& options, Context& context);
ExitCode queue_apply(const QueueOptions& options, Context& context);

/// Reads `start`, `end`, `queue:NAME` or a moment, which `value` holds. Throws Error as refuse() does.
queue::QueueStart read_start(db::Connection& connection, const config::SettingValue& value,
                             const queue::QueueCatalogue& catalogue);

/// Shows the plan, asks if it changes who is mailed, and carries it out unless --dry-run is given. `note`
/// follows the changes.
ExitCode run_plan(const QueueOptions& options, Context& context, db::Connection& connection,
                  const queue::QueuePlan& plan, const queue::QueueCatalogue& catalogue,
                  const std::string& note = {});

}  // namespace mailroom::cmd
