// The times at which mails are to leave, as programs and people write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace mailroom::resend_api {

/// The forms that parse_schedule() takes, for whoever wrote another.
constexpr std::string_view schedule_forms =
    "write it as 2026-12-24T18:00:00Z, in 1 hour, or tomorrow at 9am ET";

/// ISO 8601, `in 5 minutes`, `now`, `today`, `tomorrow` or a weekday, with a time and a zone or without; any
/// case. Without a zone it is in `zone`. nullopt for anything else, and for a day that is none.
std::optional<Moment> parse_schedule(std::string_view text, Moment now, const std::string& zone);

}  // namespace mailroom::resend_api
