// Why a session cannot be opened: messages about connection strings, and what helps by what the server, the
// pooler or libpq say.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "db/errors.hpp"

namespace mailroom::db {

/// Why libpq refuses `conninfo`, as Error(configuration). `report` is libpq's message, which may quote the
/// password: the error quotes only names that cannot be a part of one.
Error unparsable(std::string_view conninfo, std::string_view report);

/// The way out of the loss of a session that `reason` tells of, in words; empty if it says nothing of that.
std::string hint_for_loss(std::string_view reason);

/// The hint of `error`, and which database was tried, or how to name one. `url`: the connection string of the
/// configuration; may be empty.
std::string unreachable_hint(const ConnectionLost& error, const std::string& url);

}  // namespace mailroom::db
