// Adds up how many tokens of a queue have each outcome, and lists those at fault.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "reconcile/reconciliation.hpp"
#include "reconcile/token_counter.hpp"

namespace mailroom {

/// Counts the tokens of a queue by outcome, stretch by stretch in the order of ids.
class QueueLedger {
 public:
  QueueLedger(pqxx::transaction_base& transaction, const ClaimRecord& record, TokenCounter::Scope scope)
      : record_(record), counter_(transaction, record, scope), result_{.queue = record.queue} {}

  void add(const Stretch& stretch);
  QueueReconciliation finish();
  /// Tokens of each action that were found.
  const std::map<std::string, std::int64_t>& found() const { return found_; }

 private:
  using CountKey = std::pair<Outcome, std::string>;
  /// Tokens whose outcome depends on how many there are of their batch or their claim.
  struct Pending {
    RecordedRange source;
    std::int64_t tokens = 0;
    std::int64_t unexplained = 0;                 ///< of these, unless the numbers explain them
    std::map<CountKey, std::int64_t> outcomes{};  ///< if the numbers confirm them
    std::vector<Situation> situations{};
    std::vector<TokenCounter::Run> runs{};
  };
  /// What to check, and the batch or the claim whose numbers confirm it.
  using CheckKey = std::pair<CountCheck, std::int64_t>;

  void count_runs();
  void note(std::size_t situation, const TokenFact& fact, std::int64_t tokens);
  void add_pending(std::size_t situation, const Judgement& judgement, std::int64_t tokens);
  void remember_pending_runs();
  void settle_up_to(std::int64_t position);
  void settle(const CheckKey& key, const Pending& pending);
  void list_pending(const CheckKey& key, const Pending& pending, const std::string& reason);
  std::string reason_for(const CheckKey& key, const Pending& pending) const;
  void list_faulty();
  void add_faulty(Outcome outcome, const std::string& reason, std::int64_t id);

  const ClaimRecord& record_;
  TokenCounter counter_;
  QueueReconciliation result_;
  std::map<std::string, std::int64_t> found_;
  std::vector<Situation> situations_;
  std::vector<TokenCounter::Run> runs_;
  std::vector<bool> is_faulty_;                   ///< by situation: some of its tokens are
  std::vector<std::vector<CheckKey>> checks_of_;  ///< by situation
  std::map<CheckKey, Pending> pending_;
  std::map<std::int64_t, std::int64_t> delivered_;  ///< batches with an outcome, and the ends of their ids
  std::map<CountKey, std::int64_t> counts_;
};

}  // namespace mailroom
