#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "feed/id_run.hpp"

namespace mailroom {

/// Transactions that hold the lock on a sequence, by their virtual transaction ids as pg_locks writes them.
using SequenceHolders = std::set<std::string>;

/// Tells which ids of a sequence to read next, so that each one that becomes visible is read, whatever order
/// transactions commit in, and none is read as new twice. Pure: it is fed with what snapshots and pg_locks
/// showed.
///
/// Why no id is missed. The first nextval() of a transaction takes a RowExclusiveLock on the sequence, which
/// the transaction keeps until it has ended and its rows are visible (or, when prepared, until it is
/// committed or rolled back). Take an id g that snapshot S did not show although it showed a greater one, v.
/// g was drawn before v, and v was drawn and committed before S. So at S the transaction of g had either
/// ended, then g is rolled back, or it held the lock. Of those that hold the lock at a later moment A only
/// such as hold it still can be the owner of g; has the owner ended between S and A, then the next snapshot
/// after A shows g. So a gap keeps the set of transactions that held the lock at each look so far. When one
/// of them has gone, the gap is read once more in a snapshot taken after that look; when none is left, that
/// was the last time. A gap of which no holder has gone cannot have changed, and is not read.
///
/// No transaction id comes into it: ids of an identity column are drawn before the transaction has one, and a
/// stranger's long transaction, which holds no such lock, keeps no gap alive.
///
/// It rests on a sequence without CACHE, on a primary (a standby has no such locks), and on rows whose ids
/// were drawn in their own transaction; for tokens the trigger before_token_insert sees to that. What lies
/// above the sequence's last value is not followed.
class IdFollower {
 public:
  /// To be called first: the newest id that the starting snapshot showed, and those below it that it did not.
  void start(std::int64_t newest, const std::vector<IdRun>& gaps);

  /// True when pg_locks has something to say.
  bool has_gaps() const { return !groups_.empty(); }
  /// Who held the sequence's lock at one moment after the last saw() snapshot and before the next.
  void set_holders(const SequenceHolders& holders);
  /// True when a gap is to be read again.
  bool has_due_gaps() const;

  /// What to read in the next snapshot, ascending: gaps that may have changed, then what is new up to `top`.
  std::vector<IdRun> to_read(std::int64_t top) const;
  /// All ids, ascending, that the snapshot showed in to_read().
  void saw(const std::vector<std::int64_t>& ids);

  std::int64_t newest() const { return newest_; }
  /// For tests and debugging: the ids that may still come to light.
  std::vector<IdRun> gaps() const;

 private:
  /// Gaps that wait for the same transactions.
  struct Group {
    std::vector<IdRun> gaps;                 ///< ascending
    std::optional<SequenceHolders> pending;  ///< null before the first look at pg_locks
    bool is_due = false;
  };

  void add_fresh(std::vector<IdRun> gaps);
  void merge_groups();

  std::int64_t newest_ = 0;
  std::vector<Group> groups_;
};

}  // namespace mailroom
