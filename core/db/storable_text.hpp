// Text for a database whose encoding has fewer characters than UTF-8.
#pragma once

#include <string>

#include "db/connection.hpp"

namespace mailroom {

/// `text` with a question mark for each character that the database may lack. For what others wrote, a name
/// or a reply, which must not keep a record from being written.
std::string storable(const SessionFacts& facts, std::string text);

/// Throws Error(usage), whose message begins with `name`, if the database lacks a character of `text`.
void require_storable(Connection& connection, const std::string& name, const std::string& text);

}  // namespace mailroom
