// The output of resend: the plan of each queue, the refusal if no token can be sent, and what was done.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cmd/selection/named_tokens.hpp"
#include "replay/resend.hpp"

namespace mailroom::cmd {

/// The tokens of all plans that would be sent.
std::int64_t sent_by(const std::vector<replay::ResendPlan>& plans);

/// The tokens of all plans, sent or not.
std::int64_t matched_by(const std::vector<replay::ResendPlan>& plans);

/// The ids of those.
std::vector<std::int64_t> sent_tokens(const std::vector<replay::ResendPlan>& plans);

/// A table for each queue that takes one of the tokens, whom they mail, and what the recipients will see.
std::string render_resend_plan(const std::vector<replay::ResendPlan>& plans, std::chrono::seconds extension,
                               const std::vector<MailedToken>& mailed);

/// Why nothing can be sent, and what helps, where `plans` send nothing. Nullopt if all that could be sent
/// waits anyway, which is no error.
std::optional<Error> resend_refusal(const std::vector<replay::ResendPlan>& plans);

/// What the recipients had before: empty if nothing is sent.
std::string sent_before_text(const replay::SentBefore& before, std::int64_t sent);

/// Plans and result as one line of JSON; `sent` is nullopt if the plan was not carried out.
std::string resend_json(const std::vector<replay::ResendPlan>& plans, std::optional<std::int64_t> sent,
                        const std::vector<MailedToken>& mailed);

}  // namespace mailroom::cmd
