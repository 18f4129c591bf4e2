#include "prune/pruner.hpp"

#include <algorithm>

#include "base/duration.hpp"

namespace mailroom {
namespace {

PruneLimit limit_from(Connection& connection, Milliseconds older_than, int step) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(older_than).count();
  const auto rows = connection.run("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint - $1::bigint",
                                   std::int64_t{seconds});
  return {.before = rows[0][0].as<std::int64_t>(), .step = step};
}

/// One pass over the tokens, then one over the batches.
class Pass {
 public:
  Pass(PruneSteps& steps, bool dry_run, const PruneObserver& go_on, PruneSummary& summary)
      : steps_(steps), dry_run_(dry_run), go_on_(go_on), summary_(summary), range_(steps.range()) {}

  void run() {
    summary_.held_back = steps_.held_back();
    walk(PruneTable::tokens, range_.tokens, summary_.tokens);
    walk(PruneTable::batches, range_.batches, summary_.batches);
  }

 private:
  void walk(PruneTable table, const IdSpan& span, std::int64_t& removed) {
    for (auto after = span.first - 1; after < span.last && !summary_.stopped;) {
      const auto step = steps_.step(table, after, range_, dry_run_);
      removed += step.removed;
      summary_.skipped += step.old - step.removed;
      const auto reached = step.reached.value_or(span.last);
      passed_ += reached - after;
      after = reached;
      ask();
    }
  }

  void ask() {
    const auto all = range_.tokens.size() + range_.batches.size();
    const auto fraction = static_cast<double>(passed_) / static_cast<double>(all);
    const bool goes_on =
        go_on_({.fraction = fraction, .tokens = summary_.tokens, .batches = summary_.batches});
    summary_.stopped = !goes_on && passed_ < all;
  }

  PruneSteps& steps_;
  bool dry_run_;
  const PruneObserver& go_on_;
  PruneSummary& summary_;
  PruneRange range_;
  std::int64_t passed_ = 0;
};

}  // namespace

Pruner::Pruner(Connection& connection, Milliseconds older_than, int step)
    : connection_(connection),
      older_than_(older_than),
      limit_(limit_from(connection, older_than, step)),
      steps_(connection, limit_) {}

PruneSummary Pruner::count(const PruneObserver& go_on) {
  PruneSummary summary;
  Pass(steps_, true, go_on, summary).run();
  return summary;
}

PruneSummary Pruner::remove(const OperationAuthor& author, const PruneObserver& go_on) {
  PruneSummary summary;
  try {
    Pass(steps_, false, go_on, summary).run();
  } catch (const ConnectionLost&) {
    throw;
  } catch (const Error&) {
    record(author, summary);
    throw;
  }
  record(author, summary);
  return summary;
}

void Pruner::record(const OperationAuthor& author, const PruneSummary& summary) {
  if (summary.empty()) return;
  connection_.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    Connection::execute(transaction, R"(
SELECT mailroom_record_operation('prune', NULL, jsonb_build_object(
  'tokens', $1::bigint, 'batches', $2::bigint, 'skipped', $3::bigint, 'older_than', $4::text,
  'before', to_char(to_timestamp($5::bigint) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
  'stopped', $6::boolean)))",
                        summary.tokens, summary.batches, summary.skipped, format_duration(older_than_),
                        limit_.before, summary.stopped);
  });
}

}  // namespace mailroom
