// Redraws a terminal without flicker, remembers lags for the trend, and reconnects.

#include "cmd/status/status_watch.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <random>

#include "base/clock.hpp"
#include "cmd/terminal/progress_bar.hpp"
#include "process/environment.hpp"
#include "process/retry.hpp"
#include "schema/bookkeeping.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

constexpr auto bucket = status::RecentEmissions::bucket;
constexpr auto trend_window = bucket * static_cast<std::int64_t>(status::RecentEmissions::bucket_count);

/// Draws over the previous screen in one write, without clearing it, to avoid flicker. The terminal truncates
/// long lines: if it wrapped them, the next screen would not cover this one.
std::string redrawn(const std::string& text) {
  std::string screen = "\x1b[H\x1b[?7l";
  for (const char c : text)
    screen += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
  return screen + "\x1b[J\x1b[?7h";
}

/// The first `most` lines of `text`.
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
        environment_(signal_, context.out().fd()),
        output_(context.out(), signal_, [] {}),
        terminal_(context.out().is_terminal()),
        lags_(interval * 2),
        backoff_(std::random_device{}()),
        retries_(context.log()) {}

  void run() {
    try {
      connect();
    } catch (const db::ConnectionLost&) {
      if (!signal_.requested()) throw;
    }
    while (!signal_.requested()) {
      try {
        if (!connection_) reconnect();
        if (connection_) refresh_and_wait();
      } catch (const db::ConnectionLost& error) {
        if (!signal_.requested()) note_loss(error);
      }
    }
  }

 private:
  void connect() {
    connection_ = context_.connect_to_schema("status", schema::tables_of_consumers(), &signal_);
  }

  void refresh_and_wait() {
    const auto next = environment_.now() + interval_;
    refresh();
    while (!signal_.requested() && environment_.now() < next) {
      // The server sends data only when it ends the session; take_notifications() then throws.
      environment_.wait(connection_->socket(), next);
      connection_->take_notifications();
    }
  }

  void refresh() {
    try {
      auto overview = read_overview(*connection_, request_);
      backoff_.reset();
      retries_.worked();
      show(std::move(overview));
    } catch (const Error& error) {
      // A table that is locked now may be free at the next refresh.
      if (error.code() != ExitCode::locked) throw;
      context_.log().warn("no report", {{"reason", error.what()}});
    }
  }

  bool is_json() const { return request_.json; }

  void show(StatusOverview overview) {
    last_ = std::move(overview);
    if (is_json()) return output_.write(render_json(*last_));
    if (!terminal_) return output_.write(render_line(*last_));
    const auto& queue = last_->queues.front().queue;
    if (last_->is_single()) lags_.add(queue.now, queue.lag().value_or(Milliseconds{0}));
    draw(*last_, nullptr);
  }

  /// Writes once per interval to a stream, as for reports; redraws a terminal at every attempt.
  void show_outage(const std::string& reason) {
    const auto now = environment_.now();
    const bool is_single = last_ && last_->is_single();
    const StatusOutage outage{.queue = is_single ? last_->queues.front().queue.queue : "",
                              .now = std::chrono::floor<Moment::duration>(std::chrono::system_clock::now()),
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

  void draw(const StatusOverview& overview, const StatusOutage* outage) {
    auto& out = context_.out();
    const auto& queue = overview.queues.front().queue;
    const StatusTrend trend{.rate = rate_trend(queue.emissions), .lag = lags_.trend(queue.now)};
    const auto footer = fmt::format("\nevery {}; Ctrl-C ends\n", format_duration(interval_));
    // The last line is for the cursor. Longer output would scroll the screen.
    const auto room = out.lines() - 1;
    const auto text = render_text(overview, {.colour = context_.colour_on(out),
                                             .width = out.width(),
                                             .max_lines = room - std::min<std::size_t>(room, 2),
                                             .trend = &trend,
                                             .outage = outage});
    // Clears the screen once.
    if (!drawn_) output_.write("\x1b[2J");
    drawn_ = true;
    output_.write(redrawn(cropped(text + footer, room)));
  }

  void note_loss(const db::ConnectionLost& error) {
    connection_.reset();
    retries_.failed("connection lost", error.what(), environment_.now());
    show_outage(error.what());
  }

  void reconnect() {
    environment_.sleep_for(backoff_.next());
    if (signal_.requested()) return;
    connect();
    if (retries_.is_news()) context_.log().info("connected again");
  }

  const StatusRequest& request_;
  Milliseconds interval_;
  Context& context_;
  process::StopSignal signal_;
  process::SystemEnvironment environment_;
  PatientOutput output_;
  bool terminal_;
  LagHistory lags_;
  process::Backoff backoff_;
  std::unique_ptr<db::Connection> connection_;
  process::RetryLog retries_;
  TimePoint next_outage_{};
  std::optional<StatusOverview> last_;
  bool drawn_ = false;
};

}  // namespace

void LagHistory::add(Moment at, Milliseconds lag) {
  samples_.push_back({at, lag});
  // One sample older than the window is kept: it may still count at the start of the window.
  while (samples_.size() > 1 && samples_[1].at <= at - trend_window)
    samples_.pop_front();
}

std::vector<std::optional<double>> LagHistory::trend(Moment now) const {
  std::vector<std::optional<double>> values(status::RecentEmissions::bucket_count);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const auto next = i + 1 < samples_.size() ? samples_[i + 1].at - Milliseconds{1} : now;
    const auto until = std::min<Moment>(next, samples_[i].at + lasts_);
    for (std::size_t n = 0; n < values.size(); ++n) {
      const auto end = now - trend_window + static_cast<std::int64_t>(n + 1) * bucket;
      if (samples_[i].at > end || until <= end - bucket) continue;
      const auto lag = static_cast<double>(samples_[i].lag.count()) / 1000;
      values[n] = std::max(values[n].value_or(0), lag);
    }
  }
  return values;
}

StatusOverview read_overview(db::Connection& connection, const StatusRequest& request) {
  const auto queues = status::shown_queues(connection, request.settings);
  const auto version = schema::read_schema_state(connection).version.value_or(0);
  const auto asked = messages::read_recent_roles(connection);
  StatusOverview overview;
  for (const auto& queue : queues) {
    try {
      StatusReport report{.queue = status::read_queue_status(connection, queue),
                          .schema_version = version,
                          .newest_schema_version = schema::embedded_migrations().back().version,
                          .findings = {},
                          .asked = asked};
      report.findings = health::judge_queue(report.queue, request.limits);
      overview.queues.push_back(std::move(report));
    } catch (const db::DatabaseError& error) {
      // One of all queues may have been dropped since they were listed.
      if (error.sqlstate() != db::sqlstate::unknown_queue || status::names_queues(request.settings) ||
          queues.size() == 1)
        throw;
    }
  }
  if (overview.queues.empty()) return read_overview(connection, request);
  std::stable_sort(overview.queues.begin(), overview.queues.end(), [](const auto& a, const auto& b) {
    if (a.queue.record.properties.priority != b.queue.record.properties.priority)
      return a.queue.record.properties.priority > b.queue.record.properties.priority;
    return a.queue.queue < b.queue.queue;
  });
  return overview;
}

ExitCode watch_status(const StatusRequest& request, Milliseconds interval, Context& context) {
  try {
    StatusWatch(request, interval, context).run();
  } catch (const ReaderGone&) {
    // As with tail, that is not a failure.
    return ExitCode::done;
  }
  return ExitCode::done;
}

}  // namespace mailroom::cmd
