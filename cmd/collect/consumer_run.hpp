// What collect and send share: the loop with its sessions, reloads, metrics and service manager, and the sink
// of one that delivers.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "carriers/carriers.hpp"
#include "claim/pg_queue_session.hpp"
#include "cmd/terminal/context.hpp"
#include "consumer/collector.hpp"
#include "delivery/delivery_sink.hpp"
#include "process/stop_signal.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom::cmd {

/// What lasts as long as a consumer runs.
struct ConsumerParts {
  const process::StopSignal& signal;
  process::StopWatcher& watcher;
  consumer::ConsumerObserver& observer;
  delivery::DeliveryLog& delivery_log;
  trace::MailTracer* tracer;  ///< null without traces
};

/// What a consumer does, and the session in which it does it.
struct ConsumerSetup {
  consumer::CollectorSetup collector;
  claim::PgQueueSession::Setup session;
  bool captures = false;  ///< a trial, which refuses a database from which mails have left
  bool has_link = true;   ///< false: it does not start while mails with a link wait, and defers later ones
};

/// How to set up a consumer from the configuration; called at the start and at each reload. Throws Error.
using MakeSetup = std::function<ConsumerSetup(const config::Settings& settings, const ConsumerParts& parts)>;

/// Which consumer runs.
struct ConsumerKind {
  const char* command = "";                     ///< `collect`
  bool delivers = false;                        ///< its sink has outcomes
  int peer = -1;                                ///< a pipe or socket whose reader it depends on; -1 for none
  const char* reader = "the reader of stdout";  ///< whom a batch waits for

  bool mails() const { return std::string_view(command) == "send"; }
};

/// Runs a consumer until it is stopped. Throws as MetricsEndpoint() and Collector::run() do.
ExitCode run_consumer(Context& context, const ConsumerKind& kind, const consumer::CollectorLimits& limits,
                      const MakeSetup& make_setup);

/// What every consumer has of the configuration; its batches and its sink are still to be set. Throws
/// Error(configuration).
ConsumerSetup consumer_setup(const config::Settings& settings);

/// In what two such consumers differ.
struct DeliverySetup {
  std::vector<delivery::DeliverySink::Way>
      ways;  ///< made already, so that a reload that fails changes nothing
  std::function<std::unique_ptr<delivery::Composer>()> compose;
  delivery::DeliverySink::Options options;  ///< without the seed
};

/// What makes the sink, once: it takes the ways.
std::function<std::unique_ptr<consumer::Sink>()> sink_maker(DeliverySetup setup, const ConsumerParts& parts,
                                                            Log& log);

}  // namespace mailroom::cmd
