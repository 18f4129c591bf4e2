// A session with a relay as the carrier and doctor see it: deliver, check, interrupt.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "carriers/smtp/refusal/relay_fault.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "delivery/answer.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::smtp {

class RelayAttempts;

/// Called with the place of a mail among several, and its answer.
using Settle = std::function<void(std::size_t, delivery::Answer)>;

/// Delivers mails to one relay over one kept connection, one after the other. Used by one thread, except
/// interrupt().
class RelaySession {
 public:
  /// Throws Error(configuration) as check_relay(). Opens no connection yet.
  RelaySession(RelayUrl url, RelayOptions options);
  /// Says goodbye to the relay, and does not wait for its answer.
  ~RelaySession();
  RelaySession(const RelaySession&) = delete;
  RelaySession& operator=(const RelaySession&) = delete;

  /// Delivers `mail`; takes as long as the relay does, within the time-outs. Where the connection was lost
  /// before the relay could have accepted the mail, tries once more on a fresh connection.
  delivery::Answer deliver(const delivery::Message& mail);
  /// Delivers several mails, and calls `settle` once for each as its answer comes. Where the relay takes
  /// messages in chunks, several of them are on their way at the same time: if the connection is lost then,
  /// what became of those is unknown. Once the relay is unavailable, the others are not tried.
  void deliver(std::span<const delivery::Message> mails, const Settle& settle);
  /// How many mails deliver() should get at once, at present: it saves them round trips.
  std::size_t window() const;
  /// How long a mail may wait for others to leave with it.
  std::chrono::nanoseconds patience() const;

  /// Connects anew, with TLS and authentication as for a mail, and names the sender of `sample`, but no
  /// recipient. Without a sample it says NOOP. Takes as long as the relay does, within the time-outs.
  RelayCheck check(const delivery::Envelope* sample = nullptr);

  /// Ends the connection, as a mail may not come soon; the next one opens another.
  void rest();

  const RelayUrl& url() const;

  /// Ends deliver(), also each later one, until resume(). From any thread; returns at once.
  void interrupt();
  void resume();

 private:
  delivery::Answer deliver_before(const delivery::Message& mail, const delivery::Message* next);

  std::unique_ptr<RelayAttempts> attempts_;
};

}  // namespace mailroom::smtp
