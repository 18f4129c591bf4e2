// Adds up how many tokens of a queue have each outcome, counts those that exist, and lists those at fault.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reconcile/judgement.hpp"
#include "reconcile/reconciliation.hpp"

namespace mailroom::reconcile {

/// Counts the existing tokens of stretches in the database, many stretches with one statement.
class TokenCounter {
 public:
  struct Scope {
    std::int64_t since = 0;  ///< of the creation of tokens, in seconds
    std::int64_t until = 0;  ///< exclusive
    std::int64_t now = 0;    ///< by which a token that waits has expired or is consumed
  };
  /// A range of ids in a situation of `situations`.
  struct Run {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::size_t situation = 0;
  };
  using OnCount = std::function<void(std::size_t situation, const TokenFact& fact, std::int64_t tokens)>;
  using OnToken = std::function<void(std::size_t situation, const TokenFact& fact, std::int64_t id)>;

  TokenCounter(pqxx::transaction_base& transaction, const ClaimRecord& record, Scope scope)
      : transaction_(transaction), record_(record), scope_(scope) {}

  /// Counts the tokens of `runs`, which are in the order of ids: those that are alike together.
  void count(const std::vector<Situation>& situations, const std::vector<Run>& runs, const OnCount& on_count);
  /// Calls `on_token` with each token of `runs`, in order.
  void list(const std::vector<Situation>& situations, const std::vector<Run>& runs, const OnToken& on_token);

 private:
  std::string facts_sql() const;
  std::string rows_sql(bool has_blocks) const;

  pqxx::transaction_base& transaction_;
  const ClaimRecord& record_;
  Scope scope_;
};

/// Counts the tokens of a queue by outcome, stretch by stretch in the order of ids.
class QueueLedger {
 public:
  using OnJudged = std::function<void(JudgedToken)>;

  /// Calls `on_judged` with each token whose outcome `wanted` wants: nearly in the order of ids, since those
  /// whose batch must be known first come later. Without `wanted` it lists none.
  QueueLedger(pqxx::transaction_base& transaction, const ClaimRecord& record, TokenCounter::Scope scope,
              const selection::Selection* wanted = nullptr, OnJudged on_judged = {})
      : record_(record),
        counter_(transaction, record, scope),
        wanted_(wanted),
        on_judged_(std::move(on_judged)),
        result_{.queue = record.queue} {}

  void add(const Stretch& stretch);
  QueueReconciliation finish();
  /// Tokens of each action that were found.
  const std::map<std::string, std::int64_t>& found() const { return found_; }

 private:
  using CountKey = std::pair<fate::Outcome, std::string>;
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
  void list_pending(const CheckKey& key, const Pending& pending, const std::string& reason, bool are_counted);
  std::string reason_for(const CheckKey& key, const Pending& pending) const;
  bool is_listed(const CountKey& key) const;
  bool is_wanted(const CountKey& key) const;
  void list_tokens();
  void list(const CountKey& key, std::int64_t id, std::int64_t at);
  void add_faulty(fate::Outcome outcome, const std::string& reason, std::int64_t id);

  const ClaimRecord& record_;
  TokenCounter counter_;
  const selection::Selection* wanted_;
  OnJudged on_judged_;
  QueueReconciliation result_;
  std::map<std::string, std::int64_t> found_;
  std::vector<Situation> situations_;
  std::vector<TokenCounter::Run> runs_;
  std::vector<bool> has_listed_;                  ///< by situation: some of its tokens are listed
  std::vector<std::vector<CheckKey>> checks_of_;  ///< by situation
  std::map<CheckKey, Pending> pending_;
  std::map<std::int64_t, std::int64_t> delivered_;  ///< batches with an outcome, and the ends of their ids
  std::map<CountKey, std::int64_t> counts_;
};

}  // namespace mailroom::reconcile
