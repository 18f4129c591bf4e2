#pragma once

#include <array>
#include <functional>
#include <pqxx/pqxx>
#include <string>
#include <vector>

#include "feed/batch_follower.hpp"
#include "feed/event.hpp"
#include "feed/id_run.hpp"

namespace mailroom {

/// The tables whose ids are followed, each with a sequence of its own.
enum class Followed : std::uint8_t { tokens, batches, operations };
/// Last values drawn, by Followed.
using SequencePositions = std::array<std::int64_t, 3>;

constexpr std::size_t index_of(Followed followed) {
  return static_cast<std::size_t>(followed);
}

/// Where the three sequences stand.
constexpr const char* sequence_positions_sql =
    "(SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tokens_id_seq), "
    "(SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM mailroom_batches_id_seq), "
    "(SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM mailroom_operations_id_seq)";

/// One snapshot of the database: of a REPEATABLE READ transaction that the caller owns and keeps short. Reads
/// small rows only, which tell what has happened and not what is to be said of it.
class FeedSnapshot {
 public:
  /// Takes the snapshot: the transaction must have read nothing before.
  explicit FeedSnapshot(pqxx::work& transaction);

  /// Read after the snapshot was taken: what it shows of ids that were drawn is not above.
  const SequencePositions& tops() const { return tops_; }
  /// The oldest transaction in progress, as consumed_between() of a later snapshot wants it.
  const std::string& xmin() const { return xmin_; }

  /// A token or an operation. Without an event for an operation of a kind that this program does not know.
  using EachId = std::function<void(std::int64_t id, const std::optional<EventKey>& event)>;
  void tokens_in(const std::vector<IdRun>& ranges, const EachId& each) const;
  void operations_in(const std::vector<IdRun>& ranges, const EachId& each) const;
  std::vector<BatchRow> batches_in(const std::vector<IdRun>& ranges) const;
  std::vector<BatchRow> batches(const std::vector<std::int64_t>& ids) const;
  std::vector<BatchRow> open_batches() const;

  /// Tokens consumed in the seconds from `floor` to `ceiling` whose row was written by a transaction not
  /// older than `xmin`.
  void consumed_between(std::int64_t floor, std::int64_t ceiling, const std::string& xmin,
                        const std::function<void(std::int64_t token, std::int64_t consumed_at)>& each) const;

  /// The newest visible id that is not above tops(), or 0.
  std::int64_t newest_id(Followed followed) const;
  /// The ids between `after` and `newest`, both excluded, that are not visible.
  std::vector<IdRun> gaps_between(Followed followed, std::int64_t after, std::int64_t newest) const;

  pqxx::work& transaction() const { return transaction_; }

 private:
  pqxx::work& transaction_;
  SequencePositions tops_{};
  std::string xmin_;
};

/// The columns of a BatchRow of mailroom_batches b, and the row that they make.
extern const std::string batch_row_columns;
BatchRow read_batch_row(const pqxx::row& row);

}  // namespace mailroom
