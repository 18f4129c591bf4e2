// A request that hangs is given up when the consumer ends: libcurl's multi interface lets another thread wake
// it.

#include "otlp/span_exporter.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/threads.hpp"
#include "carriers/http/answer.hpp"
#include "otlp/otlp_json.hpp"

namespace mailroom::otlp {
namespace {

constexpr Milliseconds longest_export_wait{60'000};  ///< that the receiver may ask for
constexpr std::chrono::minutes warn_every{5};

/// Those that OTLP names.
bool is_temporary(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

SpanExporter::SpanExporter(TraceTarget target, trace::SpanBuffer& buffer, Log& log)
    : SpanExporter(std::move(target), buffer, log, Options{}) {}

SpanExporter::SpanExporter(TraceTarget target, trace::SpanBuffer& buffer, Log& log, Options options)
    : target_(std::move(target)),
      buffer_(buffer),
      log_(log),
      options_(options),
      exchange_(target_.endpoint),
      multi_(curl_multi_init()) {
  if (!multi_) throw Error(ExitCode::failed, "cannot initialise libcurl");
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

SpanExporter::~SpanExporter() {
  stops_at_ = (steady_now() + options_.farewell).time_since_epoch().count();
  buffer_.wake();
  curl_multi_wakeup(multi_.get());
  thread_.join();
}

void SpanExporter::run() {
  std::vector<trace::Span> spans;
  while (true) {
    buffer_.wait(options_.together, steady_now() + options_.pause, [this] { return is_over(); });
    const bool was_over = is_over();
    buffer_.take(options_.together, spans);
    if (!spans.empty()) send(spans);
    if (spans.empty() && was_over) return;
  }
}

void SpanExporter::send(const std::vector<trace::Span>& spans) {
  if (steady_now() >= stops_at()) return buffer_.note_dropped(spans.size());
  body_.clear();
  append_otlp_json(body_, spans, target_.resource);
  auto wait = options_.retry;
  for (int tries = 1;; ++tries) {
    const auto result = attempt();
    if (result.is_taken) {
      note_success();
      return buffer_.note_sent(spans.size());
    }
    note_problem(result.problem);
    if (!result.may_be_repeated) return buffer_.note_refused(spans.size());
    const bool goes_on = tries < options_.tries && pause(result.wait.value_or(wait));
    if (!goes_on) return buffer_.note_dropped(spans.size());
    wait = std::min(2 * wait, options_.longest_retry);
  }
}

SpanExporter::Result SpanExporter::attempt() {
  const auto outcome = perform();
  auto problem = trace_problem(outcome);
  if (outcome.end != http::HttpEnd::answered) return {.may_be_repeated = true, .problem = std::move(problem)};
  const auto status = outcome.response.status;
  auto wait = http::parse_retry_after(outcome.response.header("retry-after"), std::time(nullptr));
  if (wait) wait = std::min(*wait, longest_export_wait);
  if (problem.empty()) return {.is_taken = true};
  return {.may_be_repeated = is_temporary(status), .wait = wait, .problem = std::move(problem)};
}

http::HttpOutcome SpanExporter::perform() {
  http::HttpRequest request;
  request.headers = target_.headers;
  request.headers.emplace_back("Content-Type: application/json");
  request.shared_body = body_;
  exchange_.prepare(std::move(request));
  auto* const handle = exchange_.handle();
  curl_multi_add_handle(multi_.get(), handle);
  std::optional<CURLcode> result;
  while (!result && steady_now() < stops_at()) {
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    int left = 0;
    while (const auto* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg == CURLMSG_DONE) result = message->data.result;
    }
    if (result) break;
    const auto patience = std::clamp<Milliseconds>(std::chrono::ceil<Milliseconds>(stops_at() - steady_now()),
                                                   Milliseconds(0), Milliseconds(1000));
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(patience.count()), nullptr);
  }
  curl_multi_remove_handle(multi_.get(), handle);
  return result ? exchange_.finish(*result) : exchange_.give_up("the consumer ends");
}

bool SpanExporter::pause(Milliseconds wait) {
  const auto until = steady_now() + wait;
  const auto is_too_late = [&] { return stops_at() < until; };
  buffer_.wait(SIZE_MAX, until, is_too_late);
  return !is_too_late();
}

void SpanExporter::note_problem(const std::string& problem) {
  has_problem_ = true;
  const auto now = steady_now();
  if (warned_at_ && now - *warned_at_ < warn_every) return;
  warned_at_ = now;
  log_.warn("the collector of traces takes no spans; mails go on",
            {{"endpoint", target_.endpoint.name}, {"reason", shown_text(problem)}});
}

void SpanExporter::note_success() {
  if (!std::exchange(has_problem_, false)) return;
  log_.info("the collector of traces takes spans again", {{"endpoint", target_.endpoint.name}});
}

}  // namespace mailroom::otlp
