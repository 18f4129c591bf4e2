// The history that audit shows of what was named.
#pragma once

#include <cstdint>
#include <string>

#include "accounts/named_subject.hpp"
#include "audit/history.hpp"

namespace mailroom::cmd {

/// Older messages to one address or of one reference are omitted.
constexpr std::int64_t most_messages_of_history = 20;

/// Accepts the id of a deleted account, because its operations are still recorded.
std::int64_t named_account_id(db::Connection& connection, const std::string& name);

audit::History read_subject_history(db::Connection& connection, const accounts::NamedSubject& subject,
                                    const audit::AuditRequest& request);

/// Adds what an operator can do beside what the history of any token says: for an account without a token,
/// and where an address is suppressed.
void add_steps(db::Connection& connection, audit::History& history);

}  // namespace mailroom::cmd
