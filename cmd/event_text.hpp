#pragma once

#include <string>
#include <string_view>

#include "feed/event.hpp"

namespace mailroom {

/// `2026-11-21T09:06:25Z`, with milliseconds where they are known.
std::string time_text(const Event& event);
/// What it happened to: `token 51`, `batch 7`, `account 17`, `queue mailroom`, or `database`.
std::string subject_text(const Event& event);
/// A batch's tokens, `41-45,47`; the matching ones alone where the filter asks for some; else nothing.
std::string ids_text(const Event& event);
/// How many tokens a batch passed over.
int skipped(const Event& event);

/// Email and login as masked_address() shows them.
Event masked(Event event);

}  // namespace mailroom
