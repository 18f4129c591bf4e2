// What the text for people says of one recipient.
#pragma once

#include <string>
#include <string_view>

namespace mailroom::bounce {

/// The text of `text` that is for people: its beginning, without the mail that some send back below; in lower
/// case.
std::string people_text(std::string_view text);

/// The paragraphs of `text`, which people_text() made, that name `address`, which may begin a line; all of it
/// if it is about one recipient only.
std::string text_about(const std::string& text, std::string_view address, bool is_only_one);

/// The first line of `text` that has a reply code, and the rest of its paragraph; empty if there is none.
std::string_view reply_words(std::string_view text);

/// True if words in lower case say that the server refused the content, after it had taken the recipient:
/// then its words of an unknown user are those of a filter.
bool is_after_data(std::string_view words);

/// True if words in lower case say that the server refused the recipient.
bool is_at_recipient(std::string_view words);

/// True if words in lower case have a form that is of refused addresses, as that of sendmail: `ada... user
/// unknown`. It says less than a command of SMTP.
bool is_of_address(std::string_view words);

}  // namespace mailroom::bounce
