// What the log of a consumer says of the receiver: each reason of failure once, its end, and no line for
// each mail.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "claim/queue_session.hpp"

namespace mailroom::delivery {

/// What the log calls the parts of a sink.
struct DeliveryWords {
  const char* side = "sink";       ///< the receiver: `relay`
  const char* item = "token";      ///< what is accepted: `mail`
  const char* messages = "lines";  ///< what is carried: `mails`
};

/// Logs that a relay or another sink is unavailable, with the first reason and each other one, and that it is
/// available again; and the first mail that is refused for a reason. Lasts as long as the consumer, so that a
/// reload forgets nothing. Addresses in the words of the receiver are masked. Takes times.
class DeliveryLog {
 public:
  /// `log` must outlive this.
  explicit DeliveryLog(Log& log) : log_(log) {}

  /// `sink` takes nothing. `others_work`: another one takes its mails.
  void unavailable(const DeliveryWords& words, const std::string& sink, const std::string& reason,
                   bool others_work, TimePoint now);
  /// `sink` has taken something, or has said something of a mail.
  void available(const DeliveryWords& words, const std::string& sink, TimePoint now);
  /// `sink` has not answered any of the oldest messages since `since`. Says so after half a minute, and then
  /// as often as of an outage.
  void waits(const DeliveryWords& words, const std::string& sink, TimePoint since, TimePoint now);
  /// Those messages have their answers, or are given up.
  void waits_no_longer(const DeliveryWords& words, TimePoint now);
  /// What a message came to. A line at debug for each; for the first with its reason one that is seen.
  void outcome(const DeliveryWords& words, const claim::TokenOutcome& outcome, TimePoint now);

 private:
  struct Outage {
    TimePoint since{};
    std::string reason;  ///< the last that was logged, without what differs from time to time
    TimePoint said_at{};
  };

  struct Wait {
    TimePoint since{};
    TimePoint said_at{};
    std::string sink;
  };

  bool is_news(const std::string& reason, TimePoint now);

  Log& log_;
  std::map<std::string, Outage> outages_{};      ///< by sink
  std::map<std::string, TimePoint> refusals_{};  ///< when each reason to refuse a mail was logged
  std::optional<Wait> wait_{};                   ///< that was logged
  TimePoint minute_{};                           ///< in which
  int lines_ = 0;                                ///< so many lines about mails were written
};

/// `reason` without the words that differ from mail to mail: those with a digit or an address, but for a code
/// at the beginning and a number of two digits.
std::string kind_of_reason(std::string_view reason);

}  // namespace mailroom::delivery
