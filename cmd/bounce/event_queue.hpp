// mailroom bounce --sqs: events in a queue of Amazon SQS.
#pragma once

#include <string>

#include "cmd/bounce/event_sources.hpp"
#include "webhook/sqs_queue.hpp"

namespace mailroom {

/// Deletes a message when its event is on record: one that comes again changes nothing.
class EventQueue final : public ProviderEvents {
 public:
  /// Throws as SqsQueue(). `once`: read() ends when the queue is empty.
  EventQueue(const std::string& url, bool once, Context& context);

  ExitCode read(BounceReader& reader, StopSignal& stop) override;

 private:
  std::size_t read_some(BounceReader& reader);

  Context& context_;
  SqsQueue queue_;
  std::string source_;
  bool once_;
};

}  // namespace mailroom
