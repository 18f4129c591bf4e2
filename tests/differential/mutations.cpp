// Fake queues that are wrong in one way each, which the comparison with PostgreSQL must notice.

#include "differential/mutations.hpp"

namespace mailroom::test {
namespace {

struct IgnoresAttempts final : FakeQueue {
  using FakeQueue::FakeQueue;
  bool is_current(const FakeBatch& /*batch*/, const claim::Lease& /*lease*/) const override { return true; }
};

struct CountsAgain final : FakeQueue {
  using FakeQueue::FakeQueue;
  void close(std::int64_t id, FakeBatch& batch, const claim::Receipt& receipt) override {
    batch.emitted.reset();
    FakeQueue::close(id, batch, receipt);
  }
};

struct MissesLateTokens final : FakeQueue {
  using FakeQueue::FakeQueue;
  Late find_late(std::size_t /*budget*/) const override { return {}; }
};

struct ForgetsUnseenIds final : FakeQueue {
  using FakeQueue::FakeQueue;
  void leave_gap(std::int64_t /*last*/) override {}
};

struct KeepsTheAttempt final : FakeQueue {
  using FakeQueue::FakeQueue;
  void lease_again(FakeBatch& batch, int session) override {
    FakeQueue::lease_again(batch, session);
    --batch.attempt;
  }
};

struct TakesFromTheLiving final : FakeQueue {
  using FakeQueue::FakeQueue;
  bool is_abandoned(const FakeBatch& batch, int session, bool take_over) const override {
    return take_over || FakeQueue::is_abandoned(batch, session, take_over);
  }
};

struct ForgetsItsOwnBatches final : FakeQueue {
  using FakeQueue::FakeQueue;
  bool is_abandoned(const FakeBatch& batch, int session, bool take_over) const override {
    return batch.holder != session && FakeQueue::is_abandoned(batch, session, take_over);
  }
};

struct ExceedsTheLimit final : FakeQueue {
  using FakeQueue::FakeQueue;
  Window read_window(int limit) const override { return FakeQueue::read_window(limit + 1); }
};

struct GivesOutExpiredTokens final : FakeQueue {
  using FakeQueue::FakeQueue;
  bool is_due(const FakeToken& token) const override { return !token.is_consumed; }
};

struct GivesOutConsumedTokens final : FakeQueue {
  using FakeQueue::FakeQueue;
  bool is_due(const FakeToken& token) const override { return now() < token.expires; }
};

struct TakesEveryAction final : FakeQueue {
  using FakeQueue::FakeQueue;
  bool is_taken(const FakeToken& /*token*/) const override { return true; }
};

struct IgnoresPauses final : FakeQueue {
  using FakeQueue::FakeQueue;
  bool is_paused() const override { return false; }
};

struct DebitsNothing final : FakeQueue {
  using FakeQueue::FakeQueue;
  void debit(int /*tokens*/) override {}
};

struct DebitsTwice final : FakeQueue {
  using FakeQueue::FakeQueue;
  void debit(int tokens) override { FakeQueue::debit(2 * tokens); }
};

struct DefersForNoTime final : FakeQueue {
  using FakeQueue::FakeQueue;
  Ids find_deferred(std::size_t room) const override {
    Ids tokens;
    for (const auto& [token, delivery] : deliveries()) {
      if (delivery.not_before && tokens.size() < room) tokens.push_back(token);
    }
    return tokens;
  }
};

struct CutsNoBatch final : FakeQueue {
  using FakeQueue::FakeQueue;
  void cut_batches(const std::function<bool(std::int64_t)>& /*is_cut*/) override {}
};

struct RewindsBesideDeferrals final : FakeQueue {
  using FakeQueue::FakeQueue;
  void cancel_deferred(std::int64_t /*beyond*/) override {}
};

struct LeavesAcceptedWaiting final : FakeQueue {
  using FakeQueue::FakeQueue;
  bool is_resent_after(std::int64_t /*token*/, std::int64_t /*batch*/) const override { return true; }
};

template <typename Queue>
Mutation mutation(const char* name) {
  return {name, [](const FakeQueue::Setup& setup) { return std::make_unique<Queue>(setup); }};
}

}  // namespace

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all{
      mutation<IgnoresAttempts>("an acknowledgement ignores the attempt"),
      mutation<CountsAgain>("a repeated receipt counts again"),
      mutation<MissesLateTokens>("late tokens are never found"),
      mutation<ForgetsUnseenIds>("ids that a claim has not seen are forgotten"),
      mutation<KeepsTheAttempt>("an abandoned batch keeps its attempt"),
      mutation<TakesFromTheLiving>("batches of living sessions are taken over"),
      mutation<ForgetsItsOwnBatches>("a batch whose reply was lost is not leased again to its session"),
      mutation<ExceedsTheLimit>("a batch exceeds the limit by one"),
      mutation<GivesOutExpiredTokens>("expired tokens are given out"),
      mutation<GivesOutConsumedTokens>("consumed tokens are given out"),
      mutation<TakesEveryAction>("a queue takes the tokens of every action"),
      mutation<IgnoresPauses>("a paused queue gives out tokens"),
      mutation<DebitsNothing>("a rate is not debited"),
      mutation<DebitsTwice>("a rate is debited twice"),
      mutation<DefersForNoTime>("a deferred token is due at once"),
      mutation<CutsNoBatch>("a rewind does not cut open batches"),
      mutation<RewindsBesideDeferrals>("a rewind leaves deferred tokens deferred"),
      mutation<LeavesAcceptedWaiting>("a mail that was accepted after all stays deferred"),
  };
  return all;
}

}  // namespace mailroom::test
