// Which traces tokens belong to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/values.hpp"

namespace mailroom::audit {

/// The trace ids of those of the tokens that an application gave one, as 32 hexadecimal digits. None for a
/// role that may not read them.
std::map<std::int64_t, std::string> read_trace_ids(pqxx::transaction_base& transaction,
                                                   const std::vector<std::int64_t>& tokens);

}  // namespace mailroom::audit
