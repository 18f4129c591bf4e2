// Parses send.headers, so that no header of the operator's breaks or redirects a mail.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mail/refusal.hpp"

namespace mailroom {

/// A header that the operator adds to each mail.
struct ExtraHeader {
  std::string name;
  std::string value;

  bool operator==(const ExtraHeader&) const = default;
};

/// Reads each item as `Name: value`. The name has letters, digits and hyphens, is given once and is not one
/// that mailroom writes itself or that changes who receives the mail; the value is printable ASCII. A refusal
/// names the item by its number.
std::variant<std::vector<ExtraHeader>, Refusal> parse_extra_headers(const std::vector<std::string>& items);

}  // namespace mailroom
