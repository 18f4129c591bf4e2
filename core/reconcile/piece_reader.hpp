// Streams the records of a queue as pieces, since they may not fit into memory.
#pragma once

#include <functional>

#include "reconcile/claim_record.hpp"
#include "reconcile/piece.hpp"

namespace mailroom {

/// Calls `each` with every piece of the queue's record, ordered by first id. Reads them within the caller's
/// transaction by a cursor, which the server sorts, on disk if there are many; `each` may run statements.
void read_pieces(pqxx::transaction_base& transaction, const ClaimRecord& record,
                 const std::function<void(Piece)>& each);

}  // namespace mailroom
