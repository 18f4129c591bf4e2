// The thread that sends spans to a collector of traces, by OTLP over HTTP.
#pragma once

#include <atomic>
#include <curl/curl.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "otlp/trace_target.hpp"
#include "trace/span_buffer.hpp"

namespace mailroom::otlp {

/// Sends what is in a buffer, many spans in a request. What the receiver does not take for the moment is
/// sent again, and given up after some times; meanwhile the buffer drops what it has no room for. Nobody else
/// waits for it but the destructor.
class SpanExporter {
 public:
  struct Options {
    std::size_t together = 2048;  ///< spans in a request
    Milliseconds pause{1000};     ///< at most, between a span and its request
    Milliseconds retry{1000};     ///< before the first repetition; then twice as long each
    Milliseconds longest_retry{30'000};
    int tries = 5;
    Milliseconds farewell{2000};  ///< for what is left at the end
  };

  /// Throws Error(failed). `buffer` and `log` must outlive this.
  SpanExporter(TraceTarget target, trace::SpanBuffer& buffer, Log& log, Options options);
  SpanExporter(TraceTarget target, trace::SpanBuffer& buffer, Log& log);
  /// Sends what is left for Options::farewell at most, and drops the rest.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

 private:
  /// What became of a request.
  struct Result {
    bool is_taken = false;
    bool may_be_repeated = false;
    std::optional<Milliseconds> wait{};  ///< as the receiver says
    std::string problem{};
  };

  void run();
  void send(const std::vector<trace::Span>& spans);
  Result attempt();
  http::HttpOutcome perform();
  /// Waits; false, and at once, if it is over by then.
  bool pause(Milliseconds wait);
  bool is_over() const { return stops_at_ != TimePoint::max().time_since_epoch().count(); }
  TimePoint stops_at() const { return TimePoint(TimePoint::duration(stops_at_)); }
  void note_problem(const std::string& problem);
  void note_success();

  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };

  TraceTarget target_;
  trace::SpanBuffer& buffer_;
  Log& log_;
  Options options_;
  http::HttpExchange exchange_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::atomic<TimePoint::rep> stops_at_ = TimePoint::max().time_since_epoch().count();
  std::string body_;  ///< of a request
  bool has_problem_ = false;
  std::optional<TimePoint> warned_at_{};
  std::thread thread_;
};

}  // namespace mailroom::otlp
