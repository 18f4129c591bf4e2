#pragma once

#include <map>
#include <utility>
#include <vector>

#include "carriers/smtp/carrier.hpp"
#include "delivery/dispatcher.hpp"

namespace mailroom::test {

struct CourierOptions {
  std::vector<RelayUrl> relays;
  RelayOptions relay{};
  int connections = 4;
  std::uint64_t seed = 0;
};

/// Mails on their way to relays, as mailroom send dispatches them.
class Courier : public Dispatcher {
 public:
  explicit Courier(const CourierOptions& options)
      : Dispatcher(std::make_unique<SmtpCarrier>(SmtpCarrier::Options{
                       .relays = options.relays, .relay = options.relay, .connections = options.connections}),
                   {.in_flight = options.connections,
                    .probe_time = options.relay.timeout,
                    .resend_for = {},
                    .seed = options.seed}) {}

  void submit(std::int64_t id, Message mail, std::int64_t batch = 0,
              TimePoint expires_at = TimePoint::max()) {
    mail.id = id;
    mail.batch = batch;
    SpooledText body{std::string(mail.body)};
    Dispatcher::submit(std::move(mail), std::move(body), expires_at);
  }
};

}  // namespace mailroom::test
