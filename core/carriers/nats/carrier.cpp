// Stops at the start for a stream that does not exist or does not take a queue's subjects.

#include "carriers/nats/carrier.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "carriers/nats/answer.hpp"
#include "carriers/nats/publisher.hpp"
#include "queue/action.hpp"

namespace mailroom::nats {
namespace {

[[noreturn]] void refuse_stream(const std::string& message, const config::Settings& settings) {
  throw Error(ExitCode::configuration, message, nats_stream_hint(settings));
}

void require_stream(const std::optional<NatsStream>& stream, const config::Settings& settings) {
  // Without a leader the stream does not show; it will.
  if (!stream || stream->failure.fault == carriers::BrokerFault::unreachable) return;
  if (!stream->exists)
    refuse_stream(fmt::format("sink.stream cannot be used: {}", stream->failure.text), settings);
  for (const auto& queue : settings.collect.queues) {
    if (!subjects_taken(*stream, settings.sink.subject, queue).empty()) continue;
    refuse_stream(fmt::format("the stream {} does not take {}", settings.sink.stream,
                              nats_subject(settings.sink.subject, queue,
                                           queue::Actions::built_in().all().front().name)),
                  settings);
  }
}

}  // namespace

std::unique_ptr<delivery::Carrier> make_nats_carrier(const carriers::CarrierSetup& setup) {
  const auto& settings = setup.settings;
  auto publisher = std::make_unique<NatsPublisher>(
      read_nats_target(settings),
      carriers::BrokerPublishing{settings.sink.stream, settings.sink.subject, settings.sink.event_source,
                                 settings.sink.timeout});
  const auto failure = publisher->connect();
  carriers::require_usable(publisher->name(), failure);
  require_stream(publisher->read_stream(), settings);
  return publisher;
}

std::string nats_library() {
  return fmt::format("libnats {}", nats_GetVersion());
}

extern const carriers::CarrierFunctions nats_carrier;
const carriers::CarrierFunctions nats_carrier{make_nats_carrier, check_nats, nats_library};

}  // namespace mailroom::nats
