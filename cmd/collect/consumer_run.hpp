#pragma once

#include <functional>

#include "cmd/terminal/context.hpp"
#include "consumer/collector.hpp"
#include "consumer/pg_queue_session.hpp"
#include "process/stop_signal.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom {

/// What lasts as long as a consumer runs.
struct ConsumerParts {
  const StopSignal& signal;
  StopWatcher& watcher;
  ConsumerObserver& observer;
};

/// How to set up a consumer from the configuration; called at the start and at each reload. Throws Error.
using MakeSetup = std::function<CollectorSetup(const Settings& settings, const ConsumerParts& parts)>;

/// Runs a consumer until it is stopped. `peer`: a pipe or socket whose reader it depends on; -1 for none.
/// Throws as Collector::run() does.
ExitCode run_consumer(Context& context, const CollectorLimits& limits, const MakeSetup& make_setup, int peer);

/// A session with the configured queue, for a sink without outcomes.
PgQueueSession::Setup session_setup(const Settings& settings, const Key& key, StopWatcher& watcher);

SessionFactory session_factory(const PgQueueSession::Setup& setup);

/// Changes when session_factory() would make a session of another kind.
std::string session_identity(const PgQueueSession::Setup& setup);

}  // namespace mailroom
