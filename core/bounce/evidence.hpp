// What the text for people says of one recipient.
#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// The paragraphs of `text` that name `address`, and the lines right behind them; all of the text if it is
/// about one recipient only.
std::string text_about(std::string_view text, std::string_view address, bool is_only_one);

/// True if the text says that the server refused the content, after it had taken the recipient: then its
/// words of an unknown user are those of a filter.
bool is_after_data(std::string_view text);

}  // namespace mailroom
