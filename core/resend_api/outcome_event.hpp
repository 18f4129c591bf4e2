// Events of Resend's webhooks, made of outcomes.
#pragma once

#include <optional>
#include <string>

#include "base/json.hpp"

namespace mailroom::resend_api {

struct OutcomeEvent {
  std::string id{};  ///< `msg_` and a uuid
  std::string body{};
};

/// `facts`: of mailroom_outcome_event(). `from`: the sender of a mail that names none. None for what Resend
/// has no event of: what its sender cancelled, and a topic.
std::optional<OutcomeEvent> outcome_event(const nlohmann::json& facts, const std::string& from);

}  // namespace mailroom::resend_api
