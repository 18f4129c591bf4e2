// The traces of a run, if the configuration says where they go.
#pragma once

#include <memory>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "trace/mail_tracer.hpp"

namespace mailroom::cmd {

/// A tracer, with the thread that sends its spans. Its end sends what is left, for two seconds at most.
class Tracing {
 public:
  Tracing(double share, std::uint64_t seed) : tracer_(share, seed, buffer_) {}

  trace::MailTracer& tracer() { return tracer_; }
  trace::SpanBuffer& buffer() { return buffer_; }
  trace::SpanCounts counts() const { return buffer_.counts(); }
  void send_with(std::shared_ptr<void> exporter) { exporter_ = std::move(exporter); }

 private:
  trace::SpanBuffer buffer_;
  trace::MailTracer tracer_;
  std::shared_ptr<void> exporter_;
};

/// Null without trace.endpoint: then there is neither a thread nor a connection. Throws Error(configuration)
/// for one that cannot be. `log` must outlive the result.
std::unique_ptr<Tracing> open_tracing(const config::Settings& settings, Log& log);

/// Sends a request without spans to trace.endpoint. Why it is not taken; empty if it is, or if this mailroom
/// sends no traces.
std::string try_tracing(const config::Settings& settings);

}  // namespace mailroom::cmd
