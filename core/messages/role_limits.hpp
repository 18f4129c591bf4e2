// How many mails roles may ask for: set here, kept by the database wherever messages are stored.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "config/rate.hpp"
#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::messages {

/// By role; none: any number.
using RoleLimits = std::map<std::string, std::optional<config::Rate>, std::less<>>;

/// Those that are kept.
RoleLimits read_role_limits(db::Connection& connection);

/// Sets or removes the limits of these roles, all or none, and records it.
void set_role_limits(db::Connection& connection, const RoleLimits& limits,
                     const queue::OperationAuthor& author);

}  // namespace mailroom::messages
