// Whether mails have left a database, so that it may be one that people rely on.
#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// Throws Error(declined) if tokens of this database were delivered by another way than `sink`, or handed
/// over as lines: it is no place for a trial that takes them.
void require_no_deliveries(Connection& connection, const std::string& sink);

}  // namespace mailroom
