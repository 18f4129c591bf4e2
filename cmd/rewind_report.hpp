#pragma once

#include <optional>
#include <string>

#include "queue/rewind.hpp"

namespace mailroom {

/// The plan as a table, with what it means in words; ends with a newline.
std::string render_rewind_plan(const RewindRequest& request, const RewindPlan& plan);

/// What is asked before it is done.
std::string rewind_question(const RewindRequest& request, const RewindPlan& plan);

/// What has been done: a line.
std::string render_rewind_result(const RewindPlan& plan, std::int64_t replayed);

/// Plan and result as one line; `replayed` is nothing when it was not carried out.
std::string rewind_json(const RewindRequest& request, const RewindPlan& plan,
                        std::optional<std::int64_t> replayed);

}  // namespace mailroom
