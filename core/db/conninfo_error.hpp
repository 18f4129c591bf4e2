// Messages about connection strings, of which any part may be a password.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace mailroom {

/// Why libpq refuses `conninfo`, as Error(configuration). `report` is libpq's message, which may quote the
/// password: the error quotes only names that cannot be a part of one.
Error unparsable(std::string_view conninfo, std::string_view report);

}  // namespace mailroom
