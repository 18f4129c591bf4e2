// What to do when a session cannot be opened, by what the server, the pooler or libpq says.
#pragma once

#include <string>
#include <string_view>

#include "db/errors.hpp"

namespace mailroom {

/// The way out of the loss of a session that `reason` tells of, in words; empty if it says nothing of that.
std::string hint_for_loss(std::string_view reason);

/// The hint of `error`, and which database was tried, or how to name one. `url`: the connection string of the
/// configuration; may be empty.
std::string unreachable_hint(const ConnectionLost& error, const std::string& url);

}  // namespace mailroom
