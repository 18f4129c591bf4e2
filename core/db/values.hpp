// Values on their way between SQL and C++: lists as one parameter, times, infinity included, and text that
// the encoding of a database may lack.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "db/connection.hpp"

namespace mailroom::db {

/// `text` with a question mark for each character that the database may lack. For what others wrote, a name
/// or a reply, which must not keep a record from being written.
std::string storable(const SessionFacts& facts, std::string text);

/// Throws Error(usage), whose message begins with `name`, if the database lacks a character of `text`.
void require_storable(Connection& connection, const std::string& name, const std::string& text);

/// SQL for the address of a row `t` of tokens, whose account, if any, is `a`: of a message with recipients,
/// that of its recipient.
constexpr const char* address_sql = R"(CASE WHEN t.recipient IS NULL THEN a.email ELSE (
    SELECT mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]) FROM mailroom_messages m WHERE m.id = t.message) END)";

/// SQL for how its message ended a row `t` of tokens, if it did: `cancelled` or `replaced`, else null. One
/// that somebody consumed before that was not ended by it.
constexpr const char* consumed_as_sql = R"((
    SELECT CASE WHEN m.cancelled_at IS NULL THEN 'replaced' ELSE 'cancelled' END FROM mailroom_messages m
    WHERE m.id = t.message AND t.consumed_at >= floor(extract(epoch FROM least(m.cancelled_at, m.replaced_at)))))";

/// SQL for `time`, a timestamptz, in microseconds since 1970. An infinite time becomes one second outside the
/// years 0000 to 9999.
inline std::string microseconds_sql(const std::string& time) {
  return fmt::format(
      "(CASE {0} WHEN 'infinity' THEN 253402300800000000 WHEN '-infinity' THEN -62167219201000000 "
      "ELSE floor(extract(epoch FROM {0}) * 1000000)::bigint END)",
      time);
}

/// PostgreSQL's text of an array, for a bound value. Strings must not need quotes.
template <typename T>
std::string array_text(const std::vector<T>& values) {
  return fmt::format("{{{}}}", joined(values, ","));
}

/// The same for any strings.
std::string quoted_array_text(const std::vector<std::string>& values);

}  // namespace mailroom::db
