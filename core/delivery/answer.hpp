// What one attempt to deliver a message came to.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::delivery {

/// What became of a message, or of one of its tokens.
enum class Verdict {
  accepted,     ///< the receiver has taken responsibility
  deferred,     ///< not accepted; a later attempt may succeed
  rejected,     ///< will never be accepted
  unknown,      ///< sent, and not answered: the receiver may have it
  unavailable,  ///< the receiver takes nothing now; says nothing of this message
};

/// The word for `verdict` in records and output: `accepted`.
inline const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::accepted:
      return "accepted";
    case Verdict::deferred:
      return "deferred";
    case Verdict::rejected:
      return "rejected";
    case Verdict::unknown:
      return "unknown";
    case Verdict::unavailable:
      return "unavailable";
  }
  return "?";
}

struct TokenVerdict {
  std::int64_t token = 0;
  Verdict verdict = Verdict::accepted;
  std::string reason{};
  std::optional<int> code{};  ///< if not that of the message; 0 for none
  bool is_about_some = false;
};

/// What another message has to differ in so that its answer shows whether a refusal meets every message.
enum class VariesWith {
  nothing,  ///< it meets every message, or says nothing of others
  sender,
  domain,   ///< of the recipient: a wish for a lower rate
  message,  ///< any other one may be taken
};

struct Answer {
  std::int64_t id = 0;  ///< of the message
  Verdict verdict = Verdict::unavailable;
  std::string sink{};   ///< of the endpoint that answered: host and port, or the program
  int code = 0;         ///< 0 for none
  std::string reply{};  ///< or why there was none; any bytes, without credentials
  /// The Message-ID by which the receiver replaces that of a mail; empty: it does not tell; nullopt: it keeps
  /// it.
  std::optional<std::string> message_id{};
  std::optional<Milliseconds> wait{};  ///< until the next attempt, if the receiver asks for it
  bool is_excused = false;      ///< the attempt does not count against the message, which is not at fault
  bool throttled = false;       ///< it asks for a lower rate
  bool crowded = false;         ///< it takes no more connections, or no more messages at once
  bool before_message = false;  ///< it ended at the connection or the login
  bool waits_for_turn = false;  ///< a limit refused the message, or kept it here: it is tried again soon
  std::string refusal{};        ///< the key of a refusal that may be about every message; else empty
  VariesWith varies_with = VariesWith::nothing;
  bool about_everyone = false;      ///< deferred, since the endpoint refuses one message after another
  bool is_about_some = false;       ///< deferred, while others are taken
  bool was_tried = true;            ///< false: returned without an attempt, since its endpoint is unavailable
  int other_connections = 0;        ///< to the endpoint, that are open beside this one
  bool others_work = false;         ///< one of them has carried a message that the receiver answered
  std::chrono::nanoseconds took{};  ///< the attempt; 0 if nothing was tried
  WallTime ended{};                 ///< when it ended
  std::vector<TokenVerdict> tokens{};  ///< those that the answer names; `verdict` holds for the others

  /// True if this was an attempt at the message.
  bool counts() const { return verdict != Verdict::unavailable && !is_excused; }
  /// True if the endpoint has said something of the message, so that it is there.
  bool shows_life() const {
    if (verdict == Verdict::unavailable || verdict == Verdict::unknown) return false;
    // An attempt that was given up here, or ended before the message was sent, says nothing of the endpoint.
    return !about_everyone && !before_message && (code != 0 || !is_excused);
  }
};

}  // namespace mailroom::delivery
