#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reconcile/reconciliation.hpp"
#include "support/rewind_rig.hpp"
#include "support/several_queues.hpp"

namespace mailroom::test {

inline reconcile::QueueReconciliation reconciled(db::Connection& connection,
                                                 const std::string& queue = "mailroom") {
  return reconcile::reconcile(connection, {.queues = {queue}}).queues.front();
}

/// `2 emitted, 1 skipped`, in the order of the classes.
inline std::string classes_of(const reconcile::QueueReconciliation& queue) {
  std::map<fate::Outcome, std::int64_t> sums;
  for (const auto& count : queue.counts)
    sums[count.outcome] += count.tokens;
  std::vector<std::string> parts;
  for (const auto& [outcome, tokens] : sums)
    parts.push_back(fmt::format("{} {}", tokens, fate::outcome_name(outcome)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The explanations of the tokens of a class, one after the other.
inline std::string explanations_of(const reconcile::QueueReconciliation& queue, fate::Outcome outcome) {
  std::string text;
  for (const auto& count : queue.counts) {
    if (count.outcome == outcome) text += (text.empty() ? "" : "; ") + count.explanation;
  }
  return text;
}

/// `1-2, 5`: the ids that are unexplained.
inline std::string unexplained_in(const reconcile::QueueReconciliation& queue) {
  std::vector<std::int64_t> ids;
  for (const auto& reason : queue.faulty) {
    for (const auto& range : reason.ids) {
      for (auto id = range.first; id < range.end; ++id)
        ids.push_back(id);
    }
  }
  std::sort(ids.begin(), ids.end());
  return selection::id_ranges_text(selection::to_id_ranges(ids));
}

/// A queue whose tokens are accounted for.
struct ReconcileRig : RewindRig {
  reconcile::QueueReconciliation result(const std::string& queue = "mailroom") {
    return reconciled(*connection, queue);
  }
  std::string classes(const std::string& queue = "mailroom") { return classes_of(result(queue)); }
  std::string unexplained(const std::string& queue = "mailroom") { return unexplained_in(result(queue)); }

  /// Inserts tokens and emits them in batches of three.
  void emit(int count, const std::string& prefix = "user") {
    insert_accounts(*connection, count, prefix);
    drain(3);
  }
  /// Of token 5, a recovery of account 1, and token 6, an activation, emits the second: from a queue `some`
  /// that takes activations alone.
  void emit_activations_alone() {
    insert_accounts(*connection, 4);
    hand("UPDATE accounts SET status = 'active' WHERE id <= 2");
    hand("DELETE FROM tokens");
    make_queue(*connection, "some", activations_only);
    hand("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery'), (3, 'activation')");
    session = attach(database, "some");
    drain();
  }
  void hand(const std::string& sql) { connection->run(sql); }
};

}  // namespace mailroom::test
