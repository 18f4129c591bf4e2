// The times that a mail and its options name.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.hpp"

namespace mailroom::submission {

/// `2026-11-28T12:00:00Z`, also with an offset, a fraction or without seconds (RFC 3339), or a date of a mail
/// (RFC 5322, section 3.3): `Sat, 28 Nov 2026 12:00:00 +0100`. nullopt for anything else, and without an
/// offset: such a time is nobody's.
std::optional<Moment> parse_mail_time(std::string_view text);

}  // namespace mailroom::submission
