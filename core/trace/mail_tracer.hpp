// Makes spans of what a consumer does with mails and lines, and of what comes back later.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "trace/span_buffer.hpp"
#include "trace/span_place.hpp"

namespace mailroom::trace {

/// The token of a mail, or a part of a line.
struct TracedToken {
  std::string_view traceparent{};  ///< of the application; empty for none
  std::string queue{};
  std::string action{};
  std::int64_t token = 0;
  std::int64_t message = 0;  ///< 0 for none
  SpanTime asked_at{};       ///< when the application asked for it
  bool was_tried = false;    ///< an attempt has been made before
};

/// A token whose attempts become spans, until its batch is done.
struct TokenTrace {
  TracedToken token{};
  std::optional<TraceParent> origin{};
  bool begins_here = false;  ///< the origin is when it was asked for, as no application has one
  SpanPlace attempt{};       ///< the place of the next one
};

/// What one attempt came to.
struct CarriedToken {
  std::string outcome{};  ///< `accepted`
  bool has_failed = false;
  int code = 0;
  std::string sink{};
  SpanTime ended{};
  std::chrono::nanoseconds took{};
};

/// What came back of a mail after it was accepted.
struct LaterEvent {
  const char* operation = "";  ///< `bounce`
  std::string outcome{};       ///< `hard`
  bool has_failed = false;
  SpanTime at{};
};

/// For one thread. Makes a span only if it is recorded, and never waits.
class MailTracer {
 public:
  /// `share`: as of SpanSampler. `buffer` must outlive this.
  MailTracer(double share, std::uint64_t seed, SpanBuffer& buffer) : sampler_(share, seed), buffer_(buffer) {}

  /// A claim has taken a batch, which ended now.
  void claimed(const std::string& queue, std::int64_t batch, int tokens, SpanTime ended,
               std::chrono::nanoseconds took);
  /// The trace that the next attempt at a token belongs to.
  std::shared_ptr<TokenTrace> trace(TracedToken token, SpanTime now);
  /// Its message was made of it in that batch, or could not be. Says when it was asked for, too, if nothing
  /// was tried before.
  void rendered(const TokenTrace& trace, std::int64_t batch, SpanTime started, SpanTime ended,
                bool has_failed);
  /// An attempt at it has ended: returns the trace that says so, nullopt if none does.
  std::optional<TraceId> carried(TokenTrace& trace, const CarriedToken& carried);
  /// Everything of the batch is done: says how it was claimed, if one of its tokens is recorded.
  void finished(std::int64_t batch);
  /// Something came back of a mail that has a traceparent.
  void came_back(const TracedToken& token, const LaterEvent& event);

 private:
  Span span_of(const TokenTrace& trace, const char* operation, const char* type, SpanKind kind) const;
  void say_asked(const TokenTrace& trace);
  void link_claim(const SpanPlace& place, std::int64_t batch);

  SpanSampler sampler_;
  SpanBuffer& buffer_;
  std::map<std::int64_t, Span> claims_;  ///< by batch
};

}  // namespace mailroom::trace
