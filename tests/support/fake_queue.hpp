#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "support/fake_tokens.hpp"

namespace mailroom::test {

/// A lease of a batch.
struct FakeHold {
  int session;
  TimePoint since;
};

/// A batch of the fake server.
struct FakeBatch {
  std::vector<std::int64_t> tokens;
  int attempt = 1;
  int holder = 0;                 ///< a session
  std::vector<FakeHold> holds{};  ///< one per attempt; the first of an added abandoned batch is made up
  std::optional<claim::BatchCounts> emitted{};
  bool dead = false;

  bool is_open() const { return !emitted && !dead; }
};

/// What became of a token that was delivered with an outcome.
struct FakeDelivery {
  fate::Outcome state = fate::Outcome::accepted;
  int attempts = 0;
  int unknowns = 0;
  std::optional<TimePoint> not_before{};
  int deferral = 0;  ///< its place among all deferrals
  std::int64_t batch = 0;
  bool was_accepted = false;
  std::string address{};
  std::string reply{};
  std::vector<std::string> earlier{};             ///< state, address and reply of each outcome before
  std::set<std::pair<std::int64_t, int>> late{};  ///< the batches and attempts that were taken over of them

  /// An outcome of `next` follows. A deferral without words says nothing, unless another batch follows it and
  /// something precedes it.
  void keep(std::int64_t next);
};

/// A token every `gap` on average, and `burst` at once.
struct FakeRate {
  Milliseconds gap{};
  int burst = 1;
  TimePoint taken_until{};  ///< the time at which the rate allows what has been taken
};

/// One queue of the fake server, without SQL: what mailroom_claim() and the functions of an operator do.
/// Leases end with their session, abandoned batches are leased again with the next attempt, and
/// acknowledgements are fenced by the attempt and may be repeated. tests/differential compares it with
/// PostgreSQL, and overrides one of its steps at a time.
class FakeQueue {
 public:
  struct Setup {
    const FakeTokens& tokens;
    const Clock& clock;
    std::function<bool(int session)> lives;  ///< whether the server keeps the session
  };
  explicit FakeQueue(Setup setup) : setup_(std::move(setup)) {}
  virtual ~FakeQueue() = default;
  FakeQueue(const FakeQueue&) = delete;
  FakeQueue& operator=(const FakeQueue&) = delete;

  /// `delivers`: the session records outcomes.
  claim::ClaimReply claim(int session, bool delivers, const claim::ClaimRequest& request);

  struct Rewound {
    std::int64_t cursor_before = 0;
    int replayed = 0;
  };
  /// Throws DatabaseError MR004 for a target that no token has reached.
  Rewound rewind(std::int64_t target);
  /// Emits committed tokens below the cursor again; returns how many.
  int replay(const std::vector<std::int64_t>& tokens);
  /// False if nothing changed.
  bool pause(bool paused) { return std::exchange(paused_, paused) != paused; }
  /// Takes the tokens of `actions` (nullopt: of all), at `rate` (nullopt: at any).
  void define(const std::optional<std::set<const queue::Action*>>& actions,
              const std::optional<FakeRate>& rate);
  /// Adds a batch that `session` has leased; `tokens` are the newest ones.
  void add_batch(int session, const std::vector<std::int64_t>& tokens);

  std::int64_t cursor() const { return cursor_; }
  std::int64_t published_cursor() const { return published_; }
  /// By batch id.
  const std::map<std::int64_t, FakeBatch>& batches() const { return batches_; }
  const std::map<std::int64_t, FakeDelivery>& deliveries() const { return deliveries_; }
  /// Ids at or below the cursor that a claim has not seen yet, committed or not.
  const std::vector<std::set<std::int64_t>>& gaps() const { return gaps_; }
  /// All tokens that were skipped because they had expired or were consumed.
  const claim::BatchCounts& skipped() const { return skipped_; }
  /// The committed tokens of this queue that no claim has seen yet.
  std::vector<std::int64_t> waiting() const;
  /// How many of them are due now.
  std::size_t due() const;

 protected:
  using Ids = std::vector<std::int64_t>;

  /// What a claim reads above the cursor.
  struct Window {
    Ids due{};
    std::int64_t last = 0;
    int read = 0;
    int others = 0;  ///< tokens of other actions
    int consumed = 0;
    int expired = 0;
    bool capped = false;
  };
  /// What a claim finds in the gaps.
  struct Late {
    Ids taken{};
    Ids found{};        ///< those of other actions too
    bool left = false;  ///< there may be more
  };

  // Steps of a claim.
  virtual bool is_paused() const { return paused_; }
  virtual bool is_taken(const FakeToken& token) const {
    return !actions_ || actions_->contains(token.action);
  }
  virtual bool is_due(const FakeToken& token) const { return !token.is_consumed && now() < token.expires; }
  virtual bool is_abandoned(const FakeBatch& batch, int session, bool take_over) const {
    return batch.holder == session || (take_over && !setup_.lives(batch.holder));
  }
  virtual bool is_current(const FakeBatch& batch, const claim::Lease& lease) const {
    return batch.attempt == lease.attempt;
  }
  virtual Window read_window(int limit) const;
  virtual Late find_late(std::size_t budget) const;
  virtual Ids find_deferred(std::size_t room) const;
  virtual void close(std::int64_t id, FakeBatch& batch, const claim::Receipt& receipt);
  virtual void lease_again(FakeBatch& batch, int session);
  virtual void leave_gap(std::int64_t last);
  virtual void debit(int tokens);
  void note_resent(std::int64_t token);
  virtual bool is_resent_after(std::int64_t token, std::int64_t batch) const;
  // Steps of a rewind.
  virtual void cut_batches(const std::function<bool(std::int64_t)>& is_cut);
  virtual void cancel_deferred(std::int64_t beyond);

  TimePoint now() const { return setup_.clock.now(); }

 private:
  using Batches = std::map<std::int64_t, FakeBatch>;
  struct Abandoned {
    Batches::iterator batch;
    Batches::iterator exhausted;  ///< after too many attempts
  };
  struct Allowance {
    int allowed = 0;
    Milliseconds wait{};  ///< until the tokens asked for are allowed
  };
  /// What a claim may do within the rate.
  struct Pace {
    int limit = 0;
    bool take_over = false;
    int seen = 0;
    std::int64_t last = 0;
    Milliseconds wait{};
  };
  /// What a claim has read before it writes.
  struct Reading {
    Window window{};
    Late late{};
    Ids deferred{};
    int seen = 0;

    int taken() const { return static_cast<int>(window.due.size() + late.taken.size() + deferred.size()); }
  };

  claim::ClaimReply acknowledge_alone(int session, const claim::Receipt& receipt);
  bool is_void(const std::optional<claim::Receipt>& receipt);
  Allowance allowance(int needed) const;
  Pace pace(int session, const claim::ClaimRequest& request);
  Abandoned find_abandoned(int session, const claim::ClaimRequest& request);
  claim::ClaimReply claim_within(int session, bool delivers, const claim::ClaimRequest& request);
  Window read_step(std::int64_t after, int rows) const;
  Reading read(int limit) const;
  void take(int session, const claim::ClaimRequest& request, const Reading& reading,
            claim::ClaimReply& reply);
  void forget(const Ids& found);
  void bury(std::int64_t id, FakeBatch& batch, bool delivers);
  void record(std::int64_t batch, claim::TokenOutcome outcome);
  void record_late(std::int64_t id, const FakeBatch& batch, const claim::Receipt& receipt);
  void end_deferral(claim::TokenOutcome& outcome, TimePoint until) const;
  template <typename Each>
  void for_waiting(const Each& each) const;

  Setup setup_;
  std::int64_t cursor_ = 0;
  std::int64_t published_ = 0;
  std::vector<std::set<std::int64_t>> gaps_;
  Batches batches_;
  std::map<std::int64_t, FakeDelivery> deliveries_;
  std::map<std::int64_t, std::int64_t>
      resent_;  ///< the newest batch before an operator had a token emitted again
  int deferrals_ = 0;
  claim::BatchCounts skipped_;
  std::optional<std::set<const queue::Action*>> actions_;
  bool paused_ = false;
  std::optional<FakeRate> rate_;
};

using MakeFakeQueue = std::function<std::unique_ptr<FakeQueue>(const FakeQueue::Setup&)>;

}  // namespace mailroom::test
