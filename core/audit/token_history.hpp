// What a history says of its tokens: their events, and what became of each.
#pragma once

#include <vector>

#include "audit/history.hpp"
#include "audit/token_facts.hpp"

namespace mailroom::audit {

/// Adds the events of `tokens`, newest first, and the statuses of the newest. Within the caller's
/// transaction.
void add_tokens(pqxx::transaction_base& transaction, const AuditRequest& request, History& history,
                std::vector<TokenFacts> tokens);

}  // namespace mailroom::audit
