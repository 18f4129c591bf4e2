#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// True for well-formed UTF-8, control characters included.
bool is_utf8(std::string_view text);

/// `text` with U+FFFD for each byte that is no UTF-8.
std::string sound_utf8(std::string_view text);

/// True for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates) without ASCII control characters
/// (U+0000 to U+001F, U+007F): what may stand in a line of output.
bool is_printable(std::string_view text);

/// `text` with a question mark for each character that could steer a terminal, end a line, turn the direction
/// of text around or be overlooked (U+0000 to U+001F, U+007F to U+009F, U+061C, U+200B to U+200F, U+2028 to
/// U+202E, U+2060 to U+206F, U+FEFF, U+FFF9 to U+FFFB), and for each byte that is no UTF-8.
std::string printable(std::string_view text);

/// The same for a whole output: line ends, tabulators and colours stay.
std::string printable_lines(std::string_view text);

/// What somebody else chose, as it may stand in text for people: printable, and no more than 1,000 columns
/// of it.
std::string shown_text(std::string_view text);

/// `json` with `\uXXXX` for what printable() replaces: the same value, in characters that show what is there.
std::string escaped_json(std::string json);

}  // namespace mailroom
