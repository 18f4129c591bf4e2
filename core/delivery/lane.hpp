// The way out for the messages of some profiles, or of all: a carrier with its dispatcher.
//
// It decides which messages a batch does not wait for. It does not order the messages of its own
// (dispatcher), and knows nothing of other lanes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "delivery/breaker.hpp"
#include "delivery/delivery_log.hpp"
#include "delivery/dispatcher.hpp"

namespace mailroom::delivery {

/// A dispatcher with what consumers share about its endpoints. For one thread.
class Lane {
 public:
  Lane(std::unique_ptr<Carrier> carrier, const Dispatcher::Options& options);

  Dispatcher& dispatcher() { return dispatcher_; }
  const Dispatcher& dispatcher() const { return dispatcher_; }

  /// Of its endpoints.
  const std::vector<std::string>& names() const { return shared_.names(); }
  /// True if one of its endpoints is among `sinks`.
  bool is_among(const std::vector<std::string>& sinks) const;
  /// A session with the receiver has been recorded at `now`, for the leases that are open.
  void begun(TimePoint now) { begun_at_ = now; }
  /// True if that, or an answer, was a moment ago: then the next leases may be recorded so as they are
  /// claimed.
  bool is_in_session(TimePoint now) const;

  /// The answer to a further message while it cannot leave soon: its endpoints are unavailable, at their
  /// rate, or busy with slow messages. nullopt: it can.
  std::optional<Answer> turn_away(TimePoint now);
  /// It has given this answer.
  void note(const Answer& answer);
  /// True if its last message took longer than others should wait for.
  bool is_slow() const { return is_slow_; }
  /// Some messages wait for their answer longer than their batch does.
  void is_late() { is_slow_ = true; }

  /// Exchanges the states of the endpoints with other consumers. Tells the log which are unavailable, and
  /// which are no longer.
  void consult(claim::SinkBoard& board, bool heard, DeliveryLog& log, const DeliveryWords& words);
  void note_states(DeliveryLog& log, const DeliveryWords& words);
  /// See SharedBreakers::give_back().
  void leave(claim::SinkBoard& board) { shared_.give_back(board, dispatcher_.breakers()); }
  /// Which of its endpoints are unavailable, and why; empty if none is.
  std::string unavailability() const { return shared_.unavailability(dispatcher_.breakers()); }

 private:
  SharedBreakers shared_;
  int in_flight_;
  Dispatcher dispatcher_;
  std::vector<bool> was_open_;  ///< the breakers, when they were last told to the log
  ReturnTimes return_times_;
  bool is_slow_ = false;
  std::optional<TimePoint> begun_at_{};
};

}  // namespace mailroom::delivery
