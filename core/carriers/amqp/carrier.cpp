// Stops at the start for a wrong setting. A server that cannot be reached now is tried again later.

#include "carriers/amqp/carrier.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "carriers/amqp/publisher.hpp"

namespace mailroom::amqp {

std::unique_ptr<delivery::Carrier> make_amqp_carrier(const carriers::CarrierSetup& setup) {
  const auto& settings = setup.settings;
  const auto target = read_amqp_target(settings);
  auto publisher = std::make_unique<AmqpPublisher>(
      target, carriers::BrokerPublishing{settings.sink.exchange, settings.sink.routing_key,
                                         settings.sink.event_source, settings.sink.timeout});
  carriers::BrokerFailure failure;
  auto connection = AmqpConnection::open_any(target, failure);
  carriers::require_usable("sink.to", failure);
  if (connection != nullptr) {
    for (const auto& finding : check_amqp_names(*connection, settings, target.vhost)) {
      if (finding.level == carriers::SinkFinding::Level::failure) {
        throw Error(ExitCode::configuration, finding.reason,
                    finding.fix.empty() ? finding.hint : finding.hint + ": " + finding.fix.front());
      }
    }
  }
  publisher->start(std::move(connection), failure.text);
  return publisher;
}

std::string amqp_library() {
  return fmt::format("librabbitmq {}", amqp_version());
}

extern const carriers::CarrierFunctions amqp_carrier;
const carriers::CarrierFunctions amqp_carrier{make_amqp_carrier, check_amqp, amqp_library};

}  // namespace mailroom::amqp
