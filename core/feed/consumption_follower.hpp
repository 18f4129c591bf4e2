#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

namespace mailroom {

/// Transactions of this database that have run for a while, by a name that no two share, with the second
/// since 1970 in which each began, or an earlier one.
using RunningTransactions = std::map<std::string, std::int64_t>;

/// What one look at the server showed, before a snapshot.
struct ServerLook {
  std::string snapshot;  ///< as text: when it is the same again, no transaction has ended in between
  std::int64_t now = 0;  ///< the server's clock, in seconds since 1970
  RunningTransactions running;
  bool some_are_hidden = false;  ///< other users' transactions, without pg_read_all_stats
};

/// Tells from which consumed_at on tokens have to be read so that no consumption is missed, and which of them
/// have been told already. Pure.
///
/// A consumption has no number of its own, only the time that the application wrote. That time is taken to be
/// no more than `slack` seconds before the server's clock at the start of its transaction, which it is for
/// now(). A transaction that was not among the running at the look before, since it had not run for long, has
/// begun `slack` / 2 seconds before that look at the earliest; one that was, and has gone since, is read up
/// for from its start on. Until it has gone it shows nothing, so its past is read only once.
///
/// Where other users' transactions are hidden, the last five minutes are read every five seconds instead.
///
/// Keeps a bit for each token that was told while it can come up again: as long as the oldest running
/// transaction, and never less than `slack` seconds.
class ConsumptionFollower {
 public:
  static constexpr std::int64_t hidden_past = 300;
  static constexpr std::int64_t hidden_interval = 5;

  explicit ConsumptionFollower(std::int64_t slack) : slack_(slack) {}

  /// To be called first. What the snapshot that follows shows from floor() on is to be noted with
  /// first_time().
  void start(const ServerLook& look);
  /// What the look before the next snapshot showed.
  void observe(const ServerLook& look);
  /// True when the next snapshot has to be read although nothing else says so.
  bool owes_a_read() const { return owed_ != nothing; }
  /// From which second on to read.
  std::int64_t floor() const { return std::max(oldest_, std::min(owed_, previous_now_ - slack_)); }
  bool is_new(std::int64_t token) const;
  /// Notes it. False when it was noted already.
  bool first_time(std::int64_t token, std::int64_t consumed_at);
  /// The snapshot that followed the last observe() has been read from floor() on.
  void read();

 private:
  static constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t block_size = 64;

  struct Block {
    std::uint64_t told = 0;
    std::int64_t newest = 0;  ///< the latest consumed_at of those told
  };

  void forget_old();

  std::int64_t slack_;
  std::int64_t oldest_ = 0;        ///< nothing before this second was noted at the start
  std::int64_t previous_now_ = 0;  ///< the look before the last snapshot that was read
  std::int64_t now_ = 0;
  std::int64_t owed_ = nothing;
  std::int64_t last_wide_read_ = 0;
  bool some_are_hidden_ = false;
  RunningTransactions running_;
  std::map<std::int64_t, Block> blocks_;
};

}  // namespace mailroom
