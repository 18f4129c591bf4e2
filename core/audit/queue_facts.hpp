#pragma once

#include <string>
#include <vector>

#include "audit/fate.hpp"
#include "schema/history.hpp"

namespace mailroom {

/// Sets the queues of each of `tokens`, `first_queue` first. `history` tells since when batches have been
/// recorded at all. Which claim passed a token is looked for only where no batch holds it.
void read_queue_stands(pqxx::transaction_base& transaction, const std::string& first_queue,
                       const std::vector<SchemaChange>& history, std::vector<TokenFacts>& tokens);

}  // namespace mailroom
