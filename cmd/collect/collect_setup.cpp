// Translates settings into the options of Batcher and of the sink that hands over.

#include "cmd/collect/collect_setup.hpp"

#include <limits>

#include "cmd/collect/consumer_run.hpp"
#include "compose/line_composer.hpp"

namespace mailroom {
namespace {

/// How long a line that may have been taken is sent again within its batch.
constexpr Milliseconds resend_for{60'000};

Batcher::Options batcher_options(const Settings& settings) {
  Batcher::Options options{.batch_timeout = settings.collect.batch_timeout.max,
                           .poll_interval = settings.collect.poll_interval,
                           .line_limit = settings.collect.batch_limit.max,
                           .lines_per_claim = settings.collect.lines_per_claim};
  if (!settings.collect.batch_limit.is_fixed() || !settings.collect.batch_timeout.is_fixed()) {
    options.adaptive = Batcher::Adaptive{.min_limit = settings.collect.batch_limit.min,
                                         .min_timeout = settings.collect.batch_timeout.min,
                                         .line_cost = settings.collect.line_cost};
  }
  return options;
}

/// As many lines in a claim as may be in flight, unless the configuration says otherwise.
Settings with_lines_in_flight(const Settings& settings) {
  auto filled = settings;
  const bool is_given =
      setting_of(settings, "collect.lines_per_claim").origin.kind != OriginKind::default_value;
  if (!is_given && settings.collect.batch_limit.is_fixed())
    filled.collect.lines_per_claim = settings.sink.in_flight;
  return filled;
}

DeliverySink::Options sink_options(const Settings& settings) {
  DeliverySink::Options options;
  options.dispatch.in_flight = settings.sink.in_flight;
  options.dispatch.probe_time = settings.sink.timeout;
  // Each line has an id by which the other side can tell that it has it.
  if (settings.sink.when_unknown == WhenUnknown::resend) options.dispatch.resend_for = resend_for;
  options.messages = settings.collect.lines_per_claim;
  options.message_limit = settings.collect.batch_limit.max;
  options.policy = {.when_unknown = settings.sink.when_unknown,
                    .supersede = false,
                    .resends = std::numeric_limits<int>::max()};
  return options;
}

}  // namespace

ConsumerSetup collect_setup(const Settings& settings) {
  auto setup = consumer_setup(settings);
  auto& turns = setup.collector.turns;
  turns.batcher = batcher_options(settings);
  turns.batcher_of = [settings](const QueueDefinition& queue) {
    return batcher_options(with_queue_defaults(settings, queue.name, queue.batch_limit, queue.batch_timeout));
  };
  setup.collector.notify_always = settings.collect.notify == NotifyWhen::always;
  return setup;
}

ConsumerSetup handover_setup(const Settings& settings, const ConsumerParts& parts, Log& log) {
  const auto filled = with_lines_in_flight(settings);
  auto setup = collect_setup(filled);
  setup.collector.make_sink = sink_maker({configured_carrier(settings),
                                          {settings},
                                          [] { return std::make_unique<LineComposer>(); },
                                          sink_options(filled)},
                                         parts, log);
  return setup;
}

}  // namespace mailroom
