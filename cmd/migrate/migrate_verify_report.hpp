// The output of migrate verify and baseline: what differs, and what to do about it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cmd/terminal/context.hpp"
#include "schema/verification.hpp"

namespace mailroom {

/// The differences as text, without headline and advice.
std::string render_differences(const Verification& verification, Context& context);

/// The whole report as text.
std::string render_verification(const Verification& verification, Context& context);

/// The whole report as one JSON object.
nlohmann::ordered_json verification_object(const Verification& verification);

}  // namespace mailroom
