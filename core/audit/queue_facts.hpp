#pragma once

#include <string>
#include <vector>

#include "audit/token_status.hpp"
#include "schema/history.hpp"

namespace mailroom {

/// Throws DatabaseError MR001 if the queue does not exist. Accepts an empty name.
void require_queue(pqxx::transaction_base& transaction, const std::string& queue);

/// Sets the queues of each of `tokens`, `first_queue` first. `history` shows since when batches are recorded.
/// Searches for the claim that skipped a token only if no batch holds the token.
void read_token_positions(pqxx::transaction_base& transaction, const std::string& first_queue,
                          const std::vector<SchemaChange>& history, std::vector<TokenFacts>& tokens);

}  // namespace mailroom
