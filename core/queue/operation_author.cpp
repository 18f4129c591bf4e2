// Passes actor and reason to the schema's functions and triggers as settings of the transaction.

#include "queue/operation_author.hpp"

#include "base/actor.hpp"
#include "db/values.hpp"

namespace mailroom::queue {

OperationAuthor operator_author(db::Connection& connection, const std::string& reason) {
  db::require_storable(connection, "--reason", reason);
  return {.actor = db::storable(connection.facts(), operator_name()), .reason = reason};
}

void set_author(pqxx::transaction_base& transaction, const OperationAuthor& author) {
  db::Connection::execute(transaction, R"(
SELECT set_config('mailroom.actor', $1, true), set_config('mailroom.reason', $2, true))",
                          author.actor, author.reason);
}

}  // namespace mailroom::queue
