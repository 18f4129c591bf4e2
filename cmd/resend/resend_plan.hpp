// What resend would do to what is named, and does, for whoever asks at another place than a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "config/settings.hpp"
#include "db/connection.hpp"
#include "queue/operation_author.hpp"
#include "replay/resend.hpp"

namespace mailroom::cmd {

/// For each queue a request, and its plan.
struct NamedResend {
  std::vector<replay::ResendRequest> requests{};
  std::vector<replay::ResendPlan> plans{};
  std::string text{};  ///< as the command prints it
};

/// `name` as resend takes it; tokens that have expired get `extension` anew. Throws Error where nothing can
/// be sent again, with what helps.
NamedResend plan_named_resend(db::Connection& connection, const std::string& name, Milliseconds extension,
                              const config::Settings& settings);
/// Returns what was done. Throws as replay::carry_out_resend().
std::string carry_out_named_resend(db::Connection& connection, const NamedResend& resend,
                                   const queue::OperationAuthor& author, const std::string& channel);

}  // namespace mailroom::cmd
