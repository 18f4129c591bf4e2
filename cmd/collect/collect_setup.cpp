// Translates settings into the options of Batcher and of the sink that hands over. It makes the carrier
// before the sink needs it, so that a reload that fails changes nothing.

#include "cmd/collect/collect_setup.hpp"

#include <fmt/format.h>
#include <limits>
#include <random>

#include "carriers/carriers.hpp"
#include "delivery/carrier_sink.hpp"

namespace mailroom {
namespace {

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

CarrierSink::Options sink_options(const Settings& settings) {
  CarrierSink::Options options;
  options.in_flight = settings.sink.in_flight;
  options.lines = settings.collect.lines_per_claim;
  options.line_limit = settings.collect.batch_limit.max;
  options.timeout = settings.sink.timeout;
  // Each line has an id by which the other side can tell that it has it.
  options.policy = {.when_unknown = settings.sink.when_unknown,
                    .supersede = false,
                    .resends = std::numeric_limits<int>::max()};
  options.seed = std::random_device{}();
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
  // Made here, so that a reload that fails changes nothing.
  const CarrierSetup parts_of_carrier{settings, log, std::random_device{}()};
  auto carrier =
      std::make_shared<std::unique_ptr<Carrier>>(configured_carrier(settings).make(parts_of_carrier));
  setup.collector.make_sink = [carrier, options = sink_options(filled), stop = parts.signal.stop_fd(), &log,
                               &watcher = parts.watcher, &observer = parts.observer] {
    watcher.name_reader(fmt::format("the answers of {}", (*carrier)->name()));
    return std::make_unique<CarrierSink>(std::move(*carrier), options, stop, log, observer);
  };
  return setup;
}

}  // namespace mailroom
