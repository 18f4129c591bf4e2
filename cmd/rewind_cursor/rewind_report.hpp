// The output of rewind-cursor, the plan, the question and what was done, and the part that sets sequences
// ahead.
#pragma once

#include <optional>
#include <string>

#include "cmd/terminal/context.hpp"
#include "replay/rewind.hpp"

namespace mailroom::cmd {

/// `mailroom rewind-cursor --fix-sequence`: shows the plan, asks for confirmation, and carries it out.
ExitCode run_fix_sequence(std::chrono::seconds extension, const std::string& reason, bool dry_run,
                          Context& context);

/// The plan as a table with an explanation; ends with a newline.
std::string render_rewind_plan(const replay::RewindRequest& request, const replay::RewindPlan& plan);

/// What --extend would do for `expired` tokens; empty if there are none, or if it is given. A token expires
/// after 15 minutes, so few tokens of an older range are still due.
std::string expired_note(std::int64_t expired, std::chrono::seconds extension);

/// The question before the plan is carried out.
std::string rewind_question(const replay::RewindRequest& request, const replay::RewindPlan& plan);

/// The result as one line.
std::string render_rewind_result(const replay::RewindPlan& plan, std::int64_t replayed);

/// Plan and result as one line of JSON; `replayed` is nullopt if the plan was not carried out.
std::string rewind_json(const replay::RewindRequest& request, const replay::RewindPlan& plan,
                        std::optional<std::int64_t> replayed);

}  // namespace mailroom::cmd
