// Makes foreign text safe for a terminal, a log and JSON: nothing invisible, invalid or in control.
#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// True for well-formed UTF-8, control characters included.
bool is_utf8(std::string_view text);

/// `text` with U+FFFD for each byte of invalid UTF-8.
std::string sound_utf8(std::string_view text);

/// True for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates) without ASCII control characters
/// (U+0000 to U+001F, U+007F): text that a line of output may contain.
bool is_printable(std::string_view text);

/// `text` with a question mark for each character that could control a terminal, end a line, change the
/// direction of text or be invisible (U+0000 to U+001F, U+007F to U+009F, U+061C, U+200B to U+200F, U+2028 to
/// U+202E, U+2060 to U+206F, U+FEFF, U+FFF9 to U+FFFB), and for each byte of invalid UTF-8.
std::string printable(std::string_view text);

/// As printable(), for a whole output: keeps newlines, tabs and colours.
std::string printable_lines(std::string_view text);

/// Foreign text, safe to show in a message: printable(), cut to 1,000 columns.
std::string shown_text(std::string_view text);

/// `json` with `\uXXXX` for the characters that printable() replaces; the value stays the same.
std::string escaped_json(std::string json);

}  // namespace mailroom
