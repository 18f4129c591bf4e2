// The recipients that a bounce in no standard form names in its text for people, and what it says of each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom::bounce {

/// A recipient, and the part of the text that is about it.
struct TextRecipient {
  std::string address;  ///< with the domain in lower case
  std::string about;    ///< lines of the text; all of it if it names one recipient only
};

/// Finds them where servers put them: at the begin of a line, within a command or an answer of SMTP, behind a
/// label, and anywhere if there is nothing better. `text`: what people_text() made. `others`: addresses in
/// lower case that are no recipients, as that of the sender. At most `limit`.
std::vector<TextRecipient> recipients_in_text(const std::string& text, const std::vector<std::string>& others,
                                              std::size_t limit);

}  // namespace mailroom::bounce
