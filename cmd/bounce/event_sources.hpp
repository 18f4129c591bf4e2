// Where events of providers come from while mailroom bounce runs.
#pragma once

#include <memory>
#include <string>

#include "cmd/bounce/bounce_reader.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {

/// As the options name them.
struct EventSources {
  std::string listen{};
  std::string sqs{};  ///< URL of a queue

  bool any() const { return !listen.empty() || !sqs.empty(); }
};

/// Outlives connections to the database.
class ProviderEvents {
 public:
  virtual ~ProviderEvents() = default;
  /// Records events until a stop is requested. Throws ConnectionLost: then it is called again, with another
  /// reader.
  virtual ExitCode read(BounceReader& reader, process::StopSignal& stop) = 0;
};

/// Null if the options name none. Throws Error for an address or a secret that cannot be used.
std::unique_ptr<ProviderEvents> open_event_source(const EventSources& sources, bool once, Context& context);

// The sources, in a build with HTTP.

/// mailroom bounce --listen: listens from now on; what comes while there is no database is told to come
/// again. Throws Error for an address that cannot be listened at, and without a secret.
std::unique_ptr<ProviderEvents> listen_for_events(const std::string& address, Context& context);

/// mailroom bounce --sqs: deletes a message when its event is on record, and one that comes again changes
/// nothing. `once`: read() ends when the queue is empty. Throws as SqsQueue().
std::unique_ptr<ProviderEvents> open_event_queue(const std::string& url, bool once, Context& context);

/// True if a report is of a mail that is not known, and may be soon: consumers record what became of a mail
/// some time after it left. `next`: the first row of record_bounces() of the reports; moves behind the last
/// one.
bool may_be_matched_later(const std::vector<suppression::Report>& reports,
                          std::vector<suppression::RecordedBounce>::const_iterator& next, WallTime now);
}  // namespace mailroom::cmd
