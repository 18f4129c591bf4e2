// Does the collector of traces take spans of this host? It gets a request without any.

#include <fmt/format.h>

#include "doctor/finding.hpp"
#include "doctor/subject.hpp"

namespace mailroom::doctor {

Findings check_traces(Subject& subject) {
  if (!subject.settings_complete || subject.settings->trace.endpoint.empty() || !subject.sources.try_traces)
    return {};
  const auto problem = subject.sources.try_traces(*subject.settings);
  // Mails go on without traces.
  if (!problem.empty())
    return {warning("the collector of traces takes no spans: " + problem, {},
                    "docs/tracing.md says what trace.endpoint and trace.headers_file are")};
  return {fine("the collector of traces takes spans")};
}

}  // namespace mailroom::doctor
