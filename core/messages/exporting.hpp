// What is on record of a person, for somebody who asks for it: mailroom message export.
//
// It finds what forgetting (core/messages/forgetting) would remove, and leaves out of it who else is in it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::messages {

/// A part of an export, and the rows of which tables it has.
struct ExportPart {
  std::string_view name;   ///< `messages`
  std::string_view table;  ///< `mailroom_messages`
};

/// All parts, in their order.
const std::vector<ExportPart>& export_parts();

/// Calls `each` with each part, in their order, and each record of it: an object of JSON with the key of its
/// row. Reads one snapshot.
void read_export(db::Connection& connection, const std::string& address,
                 const std::function<void(const ExportPart& part, const std::string& record)>& each);

/// `text` with `(another address)` in place of each address but `own`, which are in lower case.
std::string without_other_addresses(std::string_view text, const std::vector<std::string>& own);

}  // namespace mailroom::messages
