#include "cmd/status_watch.hpp"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <random>

#include "base/duration.hpp"
#include "base/retry_log.hpp"
#include "cmd/patient_output.hpp"
#include "queue/backoff.hpp"
#include "queue/surroundings.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {
namespace {

constexpr std::int64_t bucket = RecentEmissions::bucket_seconds * 1000;
constexpr std::int64_t window = bucket * static_cast<std::int64_t>(RecentEmissions::bucket_count);

/// Over what stands there, in one write and without clearing first, so that nothing flickers. Lines that are
/// longer than the terminal is wide are cut by it, or the next picture would not cover this one.
std::string redrawn(const std::string& text) {
  std::string screen = "\x1b[H\x1b[?7l";
  for (const char c : text)
    screen += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
  return screen + "\x1b[J\x1b[?7h";
}

/// The first lines of `text`, as many as `most`.
std::string cropped(const std::string& text, std::size_t most) {
  std::size_t end = 0;
  for (; most > 0 && end < text.size(); --most)
    end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

class StatusWatch {
 public:
  StatusWatch(const StatusRequest& request, Milliseconds interval, Context& context)
      : request_(request),
        interval_(interval),
        context_(context),
        surroundings_(signal_, context.out()),
        output_(context.out(), signal_, [] {}),
        terminal_(context.out().is_terminal()),
        lags_(interval * 2),
        backoff_(std::random_device{}()),
        retries_(context.log()) {}

  void run() {
    connection_ = context_.connect_to_schema("status");
    while (!signal_.requested()) {
      try {
        if (!connection_) reconnect();
        if (connection_) look_and_wait();
      } catch (const ConnectionLost& error) {
        note_loss(error);
      }
    }
  }

 private:
  void look_and_wait() {
    const auto next = surroundings_.now() + interval_;
    look();
    while (!signal_.requested() && surroundings_.now() < next) {
      // The server has something to say only when it ends the session; this throws then.
      surroundings_.wait(connection_->socket(), next);
      connection_->take_notifications();
    }
  }

  void look() {
    try {
      auto report = look_at_queue(*connection_, request_);
      backoff_.reset();
      retries_.worked();
      show(std::move(report));
    } catch (const Error& error) {
      // A table that is locked now may be free at the next look.
      if (error.code() != ExitCode::locked) throw;
      context_.log().warn("no look", {{"reason", error.what()}});
    }
  }

  bool is_json() const { return context_.global().output == OutputFormat::json; }

  void show(StatusReport report) {
    if (is_json()) return output_.write(render_json(report));
    if (!terminal_) return output_.write(render_line(report));
    lags_.add(report.queue.now, report.queue.lag().value_or(Milliseconds{0}));
    last_ = std::move(report);
    draw(*last_, nullptr);
  }

  /// In a stream once an interval, as of a look; on a terminal as often as it is tried.
  void show_outage(const std::string& reason) {
    const auto now = surroundings_.now();
    const StatusOutage outage{.queue = request_.queue,
                              .now = std::time(nullptr),
                              .lasts = std::chrono::floor<std::chrono::seconds>(*retries_.failing_for(now)),
                              .reason = reason};
    if (terminal_ && !is_json()) {
      if (last_) draw(*last_, &outage);
      return;
    }
    if (now < next_outage_) return;
    next_outage_ = now + interval_;
    output_.write(is_json() ? render_json(outage) : render_line(outage));
  }

  void draw(const StatusReport& report, const StatusOutage* outage) {
    auto& out = context_.out();
    const auto& queue = report.queue;
    const StatusTrend trend{.rate = rate_trend(queue.emissions), .lag = lags_.trend(queue.now)};
    const auto footer = fmt::format("\nevery {}; Ctrl-C ends\n", format_duration(interval_));
    // The last line is the cursor's. What does not fit would scroll the rest away.
    const auto room = out.lines() - 1;
    const auto text = render_text(report, {.colour = context_.colour_on(out),
                                           .width = out.width(),
                                           .most_lines = room - std::min<std::size_t>(room, 2),
                                           .trend = &trend,
                                           .outage = outage});
    // Once, to begin on an empty screen.
    if (!drawn_) output_.write("\x1b[2J");
    drawn_ = true;
    output_.write(redrawn(cropped(text + footer, room)));
  }

  void note_loss(const ConnectionLost& error) {
    connection_.reset();
    retries_.failed("connection lost", error.what(), surroundings_.now());
    show_outage(error.what());
  }

  void reconnect() {
    surroundings_.sleep_for(backoff_.next());
    if (signal_.requested()) return;
    connection_ = context_.connect_to_schema("status");
    if (retries_.is_news()) context_.log().info("connected again");
  }

  const StatusRequest& request_;
  Milliseconds interval_;
  Context& context_;
  StopSignal signal_;
  SystemSurroundings surroundings_;
  PatientOutput output_;
  bool terminal_;
  LagHistory lags_;
  Backoff backoff_;
  std::unique_ptr<Connection> connection_;
  RetryLog retries_;
  TimePoint next_outage_{};
  std::optional<StatusReport> last_;  ///< on the terminal
  bool drawn_ = false;
};

}  // namespace

void LagHistory::add(std::int64_t at, Milliseconds lag) {
  looks_.push_back({at, lag});
  // One that is older than the window may still count at its beginning.
  while (looks_.size() > 1 && looks_[1].at <= at - window)
    looks_.pop_front();
}

std::vector<std::optional<double>> LagHistory::trend(std::int64_t now) const {
  std::vector<std::optional<double>> values(RecentEmissions::bucket_count);
  for (std::size_t i = 0; i < looks_.size(); ++i) {
    const auto next = i + 1 < looks_.size() ? looks_[i + 1].at : now + 1;
    const auto until = std::min(next - 1, looks_[i].at + lasts_.count());
    for (std::size_t n = 0; n < values.size(); ++n) {
      const auto end = now - window + static_cast<std::int64_t>(n + 1) * bucket;
      if (looks_[i].at > end || until <= end - bucket) continue;
      const auto lag = static_cast<double>(looks_[i].lag.count()) / 1000;
      values[n] = std::max(values[n].value_or(0), lag);
    }
  }
  return values;
}

StatusReport look_at_queue(Connection& connection, const StatusRequest& request) {
  StatusReport report;
  report.queue = read_queue_status(connection, request.queue);
  report.schema_version = read_schema_state(connection).version.value_or(0);
  report.newest_schema_version = embedded_migrations().back().version;
  report.findings = judge_queue(report.queue, request.limits);
  return report;
}

ExitCode watch_status(const StatusRequest& request, Milliseconds interval, Context& context) {
  try {
    StatusWatch(request, interval, context).run();
  } catch (const Error& error) {
    // The reader has seen enough: as with tail, that is no failure.
    if (error.code() != ExitCode::output_closed || !context.out().reader_is_gone()) throw;
  }
  return ExitCode::done;
}

}  // namespace mailroom
