// What a report says of its recipients, as tests compare it.
#pragma once

#include <fmt/format.h>
#include <optional>
#include <string>

#include "bounce/bounce.hpp"

namespace mailroom::test {

/// `hard user_unknown 5.1.1 550 ada@mail.example`, a line for each recipient.
inline std::string recipients_of(const std::optional<bounce::Bounce>& bounce) {
  if (!bounce) return "no bounce";
  std::string text;
  for (const auto& recipient : bounce->recipients) {
    if (!text.empty()) text += '\n';
    text += fmt::format("{} {} {} {} {}", bounce::bounce_kind_name(recipient.kind),
                        bounce::bounce_reason_name(recipient.reason),
                        recipient.status.empty() ? "-" : recipient.status, recipient.code, recipient.address);
  }
  return text;
}

}  // namespace mailroom::test
