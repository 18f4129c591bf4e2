#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "claim/queue_session.hpp"
#include "support/actions.hpp"

namespace mailroom::test {

/// Parses one record without its line end, strictly after RFC 4180. Returns nullopt for an invalid record.
inline std::optional<std::vector<std::string>> parse_record(std::string_view record) {
  std::vector<std::string> values;
  for (;;) {
    std::string value;
    if (!record.empty() && record.front() == '"') {
      for (record.remove_prefix(1);; record.remove_prefix(1)) {
        if (record.empty()) return std::nullopt;
        if (record.front() == '"' && (record.size() == 1 || record[1] != '"')) break;
        if (record.front() == '"') record.remove_prefix(1);
        value += record.front();
      }
      record.remove_prefix(1);
    } else {
      const auto length = std::min(record.find(','), record.size());
      value = record.substr(0, length);
      if (value.find_first_of("\"\r\n") != std::string::npos) return std::nullopt;
      record.remove_prefix(length);
    }
    values.push_back(value);
    if (record.empty()) return values;
    if (record.front() != ',') return std::nullopt;
    record.remove_prefix(1);
  }
}

/// Returns a due token without a secret. Keeps views of the arguments.
inline claim::TokenRow row_of(std::int64_t id, const queue::Action* action, std::string_view email,
                              std::string_view login) {
  claim::TokenRow row;
  row.id = id;
  row.action = action;
  row.code = "01234";
  row.expires_at = 1'700'000'900;
  row.email = email;
  row.login = login;
  return row;
}

}  // namespace mailroom::test
