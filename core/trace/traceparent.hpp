// The context of a span as W3C Trace Context writes it: how an application says which trace a mail belongs
// to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mailroom::trace {

using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

/// A span, as others name it.
struct TraceParent {
  TraceId trace{};
  SpanId span{};
  bool is_sampled = false;  ///< it is recorded, and so are its children

  bool operator==(const TraceParent&) const = default;
};

/// Reads a traceparent, `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. nullopt for what the
/// standard does not allow: other lengths, capital letters, ids of zeros, version ff. Of a version after 00
/// it reads what 00 has.
std::optional<TraceParent> parse_traceparent(std::string_view text);

}  // namespace mailroom::trace
