// The sink of a consumer that delivers: what mailroom send, and collect with --to or --exec, have in common.
#pragma once

#include <functional>
#include <memory>

#include "carriers/carriers.hpp"
#include "cmd/collect/consumer_run.hpp"
#include "delivery/delivery_sink.hpp"

namespace mailroom {

/// In what two such consumers differ.
struct DeliverySetup {
  const CarrierKind& carrier;
  std::function<std::unique_ptr<Composer>()> compose;
  DeliverySink::Options options;  ///< without the seed
};

/// Makes the carrier now, so that a reload that fails changes nothing, and returns what makes the sink with
/// it. Throws Error(configuration).
std::function<std::unique_ptr<Sink>()> sink_maker(DeliverySetup setup, const Settings& settings,
                                                  const ConsumerParts& parts, Log& log);

}  // namespace mailroom
