#pragma once

#include <string>
#include <string_view>

#include "feed/event.hpp"

namespace mailroom {

/// `text` with a question mark for every character that could steer a terminal or end a line, and for bytes
/// that are no UTF-8.
std::string printable(std::string_view text);

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
