// How a verb that takes a selection reads the tokens of it, and how the record of the verb names it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "selection/selection.hpp"

namespace mailroom::replay {

/// The rows `t` of tokens that match `selection`, as `FROM … WHERE …`. `queue` is SQL for the queue whose
/// batches and deliveries count, $2 the parameter of the selection. Named tokens are found by their ids.
std::string chosen_tokens_sql(const selection::Selection& selection, std::string_view queue);

/// What the record of an operation says of a selection: no key for what is not given.
nlohmann::json selection_details(const selection::Selection& selection);

}  // namespace mailroom::replay
