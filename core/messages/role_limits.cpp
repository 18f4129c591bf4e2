// Each is a row of mailroom_limits; mailroom_keep_limits() keeps them.

#include "messages/role_limits.hpp"

namespace mailroom::messages {

RoleLimits read_role_limits(db::Connection& connection) {
  RoleLimits limits;
  for (
      const auto& row : connection.run(
          "SELECT role, mails, (extract(epoch FROM period) * 1000)::bigint AS milliseconds FROM mailroom_limits")) {
    limits[row.text("role")] =
        config::Rate{row.number<int>("mails"), Milliseconds(row.number("milliseconds"))};
  }
  return limits;
}

void set_role_limits(db::Connection& connection, const RoleLimits& limits,
                     const queue::OperationAuthor& author) {
  connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    for (const auto& [role, limit] : limits) {
      std::optional<int> mails;
      std::optional<std::int64_t> milliseconds;
      if (limit) mails = limit->count;
      if (limit) milliseconds = limit->period.count();
      db::Connection::execute(transaction,
                              "SELECT mailroom_limit($1, $2, $3::bigint * interval '1 millisecond')", role,
                              mails, milliseconds);
    }
  });
}

}  // namespace mailroom::messages
