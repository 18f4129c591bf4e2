// Counts and lists the tokens that exist, grouped by the facts that decide their outcome.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reconcile/judgement.hpp"

namespace mailroom {

/// Counts the existing tokens of stretches in the database, many stretches with one statement.
class TokenCounter {
 public:
  struct Scope {
    std::int64_t since = 0;  ///< of the creation of tokens, in seconds
    std::int64_t until = 0;  ///< exclusive
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

}  // namespace mailroom
