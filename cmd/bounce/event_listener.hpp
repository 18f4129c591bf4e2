// mailroom bounce --listen: events that providers post.
#pragma once

#include <string>

#include "cmd/bounce/event_sources.hpp"
#include "webhook/event_webhook.hpp"

namespace mailroom {

/// Listens from its construction on; what comes while there is no database is told to come again.
class EventListener final : public ProviderEvents {
 public:
  /// Throws Error for an address that cannot be listened at, and without a secret.
  EventListener(const std::string& address, Context& context);
  ~EventListener() override;
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;

  ExitCode read(BounceReader& reader, StopSignal& stop) override;

 private:
  void record_waiting(BounceReader& reader);
  void tell_news(BounceReader& reader);

  Context& context_;
  EventIntake intake_;
  SvixVerifier svix_;
  CurlSnsWeb web_;
  SnsVerifier sns_;
  EventWebhook webhook_;
  HttpListener listener_;
};

}  // namespace mailroom
