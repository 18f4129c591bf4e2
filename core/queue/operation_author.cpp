// Passes actor and reason to the schema's functions and triggers as settings of the transaction.

#include "queue/operation_author.hpp"

namespace mailroom {

void set_author(pqxx::transaction_base& transaction, const OperationAuthor& author) {
  Connection::execute(transaction, R"(
SELECT set_config('mailroom.actor', $1, true), set_config('mailroom.reason', $2, true))",
                      author.actor, author.reason);
}

}  // namespace mailroom
