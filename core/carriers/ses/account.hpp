// What the account at Amazon SES says of itself, and what doctor makes of it.
#pragma once

#include <string_view>
#include <vector>

#include "carriers/carriers.hpp"

namespace mailroom {

/// Reads the answer of GET /v2/email/account: sandbox, quota, whether it may send. Pure.
std::vector<SinkFinding> judge_ses_account(std::string_view body);

/// What the answers of GET /v2/email/identities/ say of an address, or of its domain: true if SES has
/// verified it for sending. Pure.
bool is_verified_identity(std::string_view body);

}  // namespace mailroom
