// Spans as OpenTelemetry's protocol (OTLP) writes them in JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trace/span.hpp"

namespace mailroom::otlp {

/// Appends the body of a request to /v1/traces, an ExportTraceServiceRequest. Attributes have the names of
/// OpenTelemetry's messaging conventions, and `mailroom.` before the others. `resource`: that of TraceTarget.
void append_otlp_json(std::string& out, std::span<const trace::Span> spans, std::string_view resource = {});

}  // namespace mailroom::otlp
