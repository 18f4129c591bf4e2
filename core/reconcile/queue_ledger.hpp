// Adds up how many tokens of a queue are in each class, and lists the unexplained ones.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "reconcile/reconciliation.hpp"
#include "reconcile/token_counter.hpp"

namespace mailroom {

/// Counts the tokens of a queue by class, stretch by stretch in the order of ids.
class QueueLedger {
 public:
  QueueLedger(pqxx::transaction_base& transaction, const ClaimRecord& record, TokenCounter::Scope scope)
      : record_(record), counter_(transaction, record, scope), result_{.queue = record.queue} {}

  void add(const Stretch& stretch);
  QueueReconciliation finish();
  /// Tokens of each action that were found.
  const std::map<std::string, std::int64_t>& found() const { return found_; }

 private:
  using CountKey = std::pair<TokenClass, std::string>;
  /// Tokens whose class depends on how many there are of their batch or their claim.
  struct Doubtful {
    Piece source;
    std::int64_t tokens = 0;
    std::int64_t unexplained = 0;                ///< of these, unless the doubt is in their favour
    std::map<CountKey, std::int64_t> classes{};  ///< unless the doubt is confirmed
    std::vector<Situation> situations{};
    std::vector<TokenCounter::Run> runs{};
  };
  /// The doubt, and the batch whose numbers settle it.
  using DoubtKey = std::pair<Doubt, std::int64_t>;

  void count_runs();
  void note(std::size_t situation, const TokenFact& fact, std::int64_t tokens);
  void add_doubt(std::size_t situation, const Judgement& judgement, std::int64_t tokens);
  void remember_doubtful_runs();
  void settle_up_to(std::int64_t position);
  void settle(const DoubtKey& key, const Doubtful& doubtful);
  void list_doubtful(const DoubtKey& key, const Doubtful& doubtful, const std::string& reason);
  std::string reason_for(const DoubtKey& key, const Doubtful& doubtful) const;
  void list_unexplained();
  void add_unexplained(const std::string& reason, std::int64_t id);

  const ClaimRecord& record_;
  TokenCounter counter_;
  QueueReconciliation result_;
  std::map<std::string, std::int64_t> found_;
  std::vector<Situation> situations_;
  std::vector<TokenCounter::Run> runs_;
  std::vector<bool> is_unexplained_;              ///< by situation: some of its tokens are
  std::vector<std::vector<DoubtKey>> doubts_of_;  ///< by situation
  std::map<DoubtKey, Doubtful> doubts_;
  std::map<std::int64_t, std::int64_t> delivered_;  ///< batches with an outcome, and the ends of their ids
  std::map<CountKey, std::int64_t> counts_;
};

}  // namespace mailroom
