#pragma once

#include <map>
#include <utility>
#include <vector>

#include "carriers/smtp/carrier.hpp"
#include "delivery/dispatcher.hpp"

namespace mailroom::test {

struct CourierOptions {
  std::vector<smtp::RelayUrl> relays;
  smtp::RelayOptions relay{};
  int connections = 4;
  std::uint64_t seed = 0;
};

/// Mails on their way to relays, as mailroom send dispatches them.
class Courier : public delivery::Dispatcher {
 public:
  explicit Courier(const CourierOptions& options)
      : delivery::Dispatcher(
            std::make_unique<smtp::SmtpCarrier>(smtp::SmtpCarrier::Options{
                .relays = options.relays, .relay = options.relay, .connections = options.connections}),
            {.in_flight = options.connections,
             .probe_time = options.relay.timeout,
             .resend_for = {},
             .seed = options.seed}) {}

  void submit(std::int64_t id, delivery::Message mail, std::int64_t batch = 0,
              TimePoint expires_at = TimePoint::max()) {
    mail.id = id;
    mail.batch = batch;
    SpooledText body{std::string(mail.body)};
    delivery::Dispatcher::submit(std::move(mail), std::move(body), expires_at);
  }
};

}  // namespace mailroom::test
