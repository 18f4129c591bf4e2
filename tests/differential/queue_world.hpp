#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "claim/queue_session.hpp"

namespace mailroom::test {

using Ids = std::vector<std::int64_t>;

/// Time passes in whole units, tokens expire in the middle of one, and deferred ones are due between: the
/// time that the play itself takes never matters.
constexpr std::chrono::hours play_unit{5000};

/// How a play changes a queue.
struct PlayedDefinition {
  std::optional<std::set<const queue::Action*>> actions{};  ///< nullopt: all
  std::optional<int> gap{};  ///< units from one token to the next; nullopt: no rate
  int burst = 1;
};

/// What can be seen of a queue between two operations.
struct Snapshot {
  struct Batch {
    std::int64_t id = 0;
    Ids tokens{};
    int attempt = 0;
    std::optional<int> holder{};  ///< a session, counted from 0; nullopt if it has ended
    bool is_acknowledged = false;
    bool is_dead = false;
    claim::BatchCounts counts{};  ///< emitted, wrong_status, invalid and skipped_ids
  };
  struct Delivery {
    std::int64_t token = 0;
    std::string state{};
    int attempts = 0;
    int unknowns = 0;
    std::optional<long> hours{};  ///< until it may be tried again
    std::int64_t batch = 0;
    bool was_accepted = false;
    std::string reply{};
    std::string address{};
    std::string earlier{};  ///< state, address and reply of each outcome before
  };
  std::int64_t cursor = 0;
  std::int64_t published_cursor = 0;
  Ids waiting{};           ///< tokens above the cursor that are due in this queue
  Ids late{};              ///< committed ids in a gap
  Ids open{};              ///< ids in a gap whose transaction is open
  int expired = 0;         ///< skipped tokens on record
  int consumed = 0;        ///< the same
  bool is_polled = false;  ///< a session keeps inserts from notifying
  std::vector<Batch> batches{};
  std::vector<Delivery> deliveries{};
};

struct Rewound {
  std::int64_t cursor_before = 0;
  int replayed = 0;
};

/// One queue with its tokens, writers and sessions: a real one, or the fake.
class QueueWorld {
 public:
  virtual ~QueueWorld() = default;

  /// Inserts a token in the open transaction of a writer, which begins with it; returns its id.
  virtual std::int64_t insert(int writer, const queue::Action* action) = 0;
  /// The tokens expire after `lifetime` units and a half; -1: they have; nullopt: never.
  virtual void commit(int writer, std::optional<int> lifetime) = 0;
  virtual void roll_back(int writer) = 0;
  /// Commits many tokens that have expired.
  virtual void flood(int count) = 0;
  virtual void consume(std::int64_t token) = 0;
  virtual void suspend_account_of(std::int64_t token) = 0;
  virtual void remove(std::int64_t token) = 0;

  virtual std::unique_ptr<claim::QueueSession> connect(bool delivers) = 0;
  /// Returns when the server has ended the session; its client does not know yet.
  virtual void terminate(claim::QueueSession& session) = 0;
  virtual void disconnect(std::unique_ptr<claim::QueueSession> session) = 0;

  virtual void pass(int units) = 0;
  virtual Rewound rewind(std::int64_t target) = 0;
  virtual std::int64_t replay(const Ids& tokens) = 0;
  virtual bool pause(bool paused) = 0;
  virtual void define(const PlayedDefinition& definition) = 0;

  /// Whatever has to be done so that the next claim depends on nothing outside of this world.
  virtual void prepare_claim() = 0;
  /// `batches`: the ids of all that were leased.
  virtual Snapshot snapshot(const Ids& batches) = 0;
};

}  // namespace mailroom::test
