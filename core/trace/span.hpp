// A span: what one step of a mail was, when, and which spans it belongs to. It has no place for an address, a
// token, a code or content.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/traceparent.hpp"

namespace mailroom::trace {

using SpanTime = std::chrono::sys_time<std::chrono::nanoseconds>;

/// The time of day, as spans have it.
inline SpanTime span_now() {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
}

/// The numbers are those of OpenTelemetry's protocol.
enum class SpanKind { internal = 1, client = 3, producer = 4, consumer = 5 };

/// Another span that one comes from without being its child.
struct SpanLink {
  TraceId trace{};
  SpanId span{};

  bool operator==(const SpanLink&) const = default;
};

struct Span {
  /// The most links that a span has.
  static constexpr std::size_t most_links = 128;

  TraceId trace{};
  SpanId id{};
  std::optional<SpanId> parent{};  ///< nullopt: it is a root
  SpanKind kind = SpanKind::internal;
  const char* operation = "";       ///< `carry`
  const char* operation_type = "";  ///< a word of OpenTelemetry's messaging conventions; empty for none
  SpanTime start{};
  SpanTime end{};
  std::string queue{};
  std::string action{};      ///< empty for none
  std::int64_t token = 0;    ///< its id; 0 for none
  std::int64_t message = 0;  ///< likewise
  std::int64_t batch = 0;    ///< likewise
  int batch_count = 0;       ///< tokens of the batch; 0: it is about one
  std::string outcome{};     ///< what came of it; empty for nothing
  int code = 0;              ///< of the answer; 0 for none
  std::string sink{};        ///< who answered: host and port, or a program; empty for nobody
  bool has_failed = false;
  std::vector<SpanLink> links{};
  int dropped_links = 0;  ///< beyond most_links
};

}  // namespace mailroom::trace
