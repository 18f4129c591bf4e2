#pragma once

#include <string>
#include <string_view>

#include "feed/event.hpp"

namespace mailroom {

/// `2026-11-21T09:06:25Z`, with milliseconds where they are known.
std::string time_text(const Event& event);
/// The subject of an event: `token 51`, `batch 7`, `account 17`, `queue mailroom`, or `database`.
std::string subject_text(const Event& event);
/// A batch's tokens, `41-45,47`: all, or those that match the filter. Empty for other events.
std::string ids_text(const Event& event);
/// The number of tokens that a batch skipped.
int skipped(const Event& event);

/// Returns the event with email and login masked by masked_address().
Event masked(Event event);

}  // namespace mailroom
