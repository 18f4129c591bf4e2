// Where mails are sent from, and whether some were: a copy of the database mails nobody until it is adopted,
// and a trial takes no tokens of one that people rely on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::queue {

/// What the database knows of the place that mails are sent from.
struct Home {
  std::string problem;             ///< why nothing is sent from here; empty if this is the place
  std::vector<std::string> hosts;  ///< whose consumers may serve it; empty: every host
  std::string adopted_by;
  Moment adopted_at{};
};

/// Joins the transaction of `connection`, if any.
Home read_home(db::Connection& connection);

/// A connected consumer on a host that may not serve the database: it ends at its next claim of a token.
struct ForeignConsumer {
  int pid = 0;                ///< of its oldest session in the server
  std::string application{};  ///< `mailroom send alice@laptop:77`
};

/// Reads them within the caller's transaction; none where every host may serve it.
std::vector<ForeignConsumer> read_foreign_consumers(pqxx::transaction_base& transaction);

/// `send alice@laptop:77, of a host that may not serve this database, is connected: it ends before …`
std::string foreign_consumer_text(const ForeignConsumer& consumer);

/// What a consumer would send once it may, at most `most_counted` of each.
struct WaitingHere {
  static constexpr int most_counted = 100'000;
  std::int64_t tokens = 0;     ///< above a cursor, and neither consumed nor expired
  std::int64_t deferred = 0;   ///< for another attempt
  std::int64_t scheduled = 0;  ///< messages
  /// When the last batch was acknowledged that is on record here.
  std::optional<Moment> last_batch_at{};
};

WaitingHere count_waiting_here(db::Connection& connection);

/// Makes this the place that mails are sent from, by consumers on `hosts` only; none: on any. Records it. In
/// a transaction of its own.
void adopt_here(db::Connection& connection, const std::vector<std::string>& hosts,
                const OperationAuthor& author);

/// Throws Error(declined) if tokens of this database were delivered by another way than `sink`, or handed
/// over as lines: it is no place for a trial that takes them.
void require_no_deliveries(db::Connection& connection, const std::string& sink);

}  // namespace mailroom::queue
