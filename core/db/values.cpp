// Keeps ASCII, which every encoding has, and asks the server where it matters.

#include "db/values.hpp"

#include "base/printable.hpp"

namespace mailroom::db {

std::string storable(const SessionFacts& facts, std::string text) {
  if (facts.encoding == "SQL_ASCII") return text;
  if (facts.encoding == "UTF8") return is_utf8(text) ? text : sound_utf8(text);
  std::string kept;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_continuation = byte >= 0x80 && byte < 0xC0;
    if (!is_continuation) kept += byte < 0x80 ? c : '?';
  }
  return kept;
}

std::string quoted_array_text(const std::vector<std::string>& values) {
  std::string array;
  for (const auto& value : values) {
    array += array.empty() ? "\"" : ",\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
    array += '"';
  }
  return "{" + array + "}";
}

void require_storable(Connection& connection, const std::string& name, const std::string& text) {
  try {
    connection.run("SELECT $1::text", text);
  } catch (const DatabaseError& error) {
    if (error.sqlstate() != sqlstate::untranslatable && error.sqlstate() != sqlstate::invalid_text) throw;
    throw Error(ExitCode::usage, name + ": " + error.what(), "write it without this character");
  }
}

}  // namespace mailroom::db
