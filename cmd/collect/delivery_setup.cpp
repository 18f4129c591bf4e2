// Makes the carrier before the sink needs it: what is wrong with it shows while the old one still works.

#include "cmd/collect/delivery_setup.hpp"

#include <fmt/format.h>
#include <random>

namespace mailroom {

std::function<std::unique_ptr<Sink>()> sink_maker(DeliverySetup setup, const Settings& settings,
                                                  const ConsumerParts& parts, Log& log) {
  std::random_device random;
  setup.options.dispatch.seed = random();
  auto carrier = std::make_shared<std::unique_ptr<Carrier>>(setup.carrier.make({settings, log, random()}));
  return [carrier, setup = std::move(setup), stop = parts.signal.stop_fd(), &log, &watcher = parts.watcher,
          &observer = parts.observer] {
    watcher.name_reader(fmt::format("the answers of {}", (*carrier)->endpoints().front()));
    return std::make_unique<DeliverySink>(setup.compose(), std::move(*carrier), setup.options, stop, log,
                                          observer);
  };
}

}  // namespace mailroom
