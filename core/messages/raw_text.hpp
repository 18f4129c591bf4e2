// The words of raw mails, in which an address is looked for: base64 and encoded words hide it from SQL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::messages {

/// All that people read of a mail, in UTF-8: its header fields and texts, those of mails within it too, and
/// the names of its files.
std::string text_of_raw_mail(std::string_view mail);

/// True if `text` has one of `addresses`, which are in lower case, in any case, and not in a longer address.
/// mailroom_mentions() says the same in SQL.
bool mentions(std::string_view text, const std::vector<std::string>& addresses);

/// The messages whose raw mail mentions one of the addresses. Reads all raw mails, some at a time.
std::vector<std::int64_t> raw_mails_naming(db::Connection& connection,
                                           const std::vector<std::string>& addresses);

}  // namespace mailroom::messages
