#pragma once

#include <string>
#include <vector>

#include "audit/fate.hpp"
#include "schema/history.hpp"

namespace mailroom {

/// Throws DatabaseError MR001 for a queue that is not there; an empty name stands for any.
void require_queue(pqxx::transaction_base& transaction, const std::string& queue);

/// Sets the queues of each of `tokens`, `first_queue` first. `history` tells since when batches have been
/// recorded at all. Which claim passed a token is looked for only where no batch holds it.
void read_queue_stands(pqxx::transaction_base& transaction, const std::string& first_queue,
                       const std::vector<SchemaChange>& history, std::vector<TokenFacts>& tokens);

}  // namespace mailroom
