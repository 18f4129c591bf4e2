#include "schedules/process.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <sstream>
#include <stdexcept>
#include <sys/mman.h>

#include "base/error.hpp"
#include "carriers/line_sink.hpp"
#include "schedules/played.hpp"

namespace mailroom::test {
namespace {

/// The writing end of a pipe without a reader.
int closed_pipe() {
  static const int end = [] {
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::runtime_error("cannot make a pipe");
    close(ends[0]);
    return ends[1];
  }();
  return end;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

Process::Process(World& world, int number)
    : world_(world), number_(number), file_(memfd_create("lines", MFD_CLOEXEC)), limit_(world.knobs.limit) {
  if (file_ < 0) throw std::runtime_error("cannot make a file in memory");
}

Process::~Process() {
  crash_ = true;
  if (fiber_) fiber_->resume();
  close(file_);
}

void Process::start() {
  if (is_running()) return;
  world_.note(number_, "starts");
  world_.disturb();
  stop_ = reload_ = crash_ = false;
  output_ = Output(file_);
  life_ = static_cast<int>(world_.lives.size());
  world_.lives.emplace_back();
  fiber_ = std::make_unique<Fiber>([this] { live(); });
  const auto turn = ++turn_;
  world_.time.at(now() + world_.up_to({}), [this, turn] { go_on(turn); });
}

void Process::start_after(int life) {
  if (world_.closing || life_ != life) return;
  if (!is_running()) return start();
  world_.time.at(now() + Milliseconds(100), [this, life] { start_after(life); });
}

void Process::stop() {
  world_.note(number_, "is asked to stop");
  world_.disturb();
  stop_ = true;
}

void Process::crash() {
  if (!is_running()) return;
  world_.note(number_, "is killed");
  world_.disturb();
  crash_ = true;
}

void Process::close_output() {
  if (!is_running()) return;
  world_.note(number_, "loses its reader");
  world_.disturb();
  output_ = Output(closed_pipe());
}

void Process::break_connection() {
  if (!socket_) return;
  world_.note(number_, "loses its connection");
  world_.disturb();
  world_.server.cut(*socket_);
}

void Process::reload(int limit, bool elsewhere) {
  world_.note(number_, "reloads its configuration, limit", limit);
  if (elsewhere) world_.disturb();
  limit_ = limit;
  world_.smallest_limit = std::min(world_.smallest_limit, limit);
  identity_ += elsewhere ? 1 : 0;
  reload_ = true;
}

std::string Process::written() const {
  std::string bytes(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
  if (pread(file_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("cannot read the output");
  }
  return bytes;
}

void Process::live() {
  std::ostringstream log_text;
  Log log({.level = LogLevel::error}, log_text);
  bool died = true;
  try {
    consumer::Collector(
        setup(), {.wait_for_database = std::chrono::hours(1)}, [this] { return setup(); }, *this, log)
        .run();
    died = false;
  } catch (const Crashed&) {
    world_.note(number_, "is dead");
  } catch (const Error& error) {
    const bool closed = error.code() == ExitCode::output_closed && output_is_closed();
    const bool away = error.code() == ExitCode::database && stop_;
    if (!closed && !away) world_.fail(std::string("the collector ended: ") + error.what());
  }
  auto& life = world_.lives[static_cast<std::size_t>(life_)];
  life.has_died = died;
  life.ended = now();
  life.log = log_text.str();
  life.given_up = static_cast<int>(count_of(life.log, "not acknowledged: it will be emitted again"));
}

void Process::go_on(std::int64_t turn) {
  if (turn != turn_ || !fiber_) return;
  ++turn_;
  wakes_ = nullptr;
  fiber_->resume();
  if (!fiber_->ended()) return;
  fiber_.reset();
  socket_.reset();
  world_.note(number_, "has ended");
  world_.disturb();
  if (world_.revive) world_.time.at(now() + *world_.revive, [this, life = life_] { start_after(life); });
}

void Process::block(TimePoint until, std::function<bool()> wakes) {
  wakes_ = std::move(wakes);
  const auto turn = ++turn_;
  world_.time.at(until, [this, turn] { go_on(turn); });
  fiber_->give_way();
  if (crash_) throw Crashed{};
}

void Process::poke() {
  if (!wakes_ || !(crash_ || wakes_())) return;
  wakes_ = nullptr;
  world_.time.at(now() + world_.up_to(Milliseconds(1)), [this, turn = turn_] { go_on(turn); });
}

Mishap Process::begin(Step step) {
  static constexpr std::array names{
      "connects",    "claims", "fetches", "asks for notifications", "arranges waking", "checks health",
      "writes line", "waits",  "sleeps"};
  world_.note(number_, names.at(static_cast<std::size_t>(step)));
  if (crash_) throw Crashed{};
  const auto mishap = world_.choose(step);
  if (mishap == Mishap::none) return mishap;
  world_.note(number_, "… mishap", static_cast<int>(mishap));
  world_.disturb();
  const bool is_call = step <= Step::health;
  if (mishap == Mishap::crash_before) throw Crashed{};
  if (mishap == Mishap::crash_after && !is_call) crash_ = true;
  if (mishap == Mishap::output_closed) close_output();
  if (mishap == Mishap::stop) stop();
  if ((mishap == Mishap::lost_request || mishap == Mishap::lost_reply) && !is_call) break_connection();
  return mishap;
}

void Process::travel() {
  block(now() + world_.up_to(world_.knobs.latency), [] { return false; });
}

void Process::wait_for_reader() {
  if (!world_.chance(world_.slow_readers)) return;
  world_.note(number_, "waits for its reader");
  world_.disturb();
  block(now() + world_.up_to(Milliseconds(2500)), [] { return false; });
  world_.disturb();
}

void Process::tear(std::string_view line) {
  ++world_.torn_lines;
  output_.write(line.substr(0, line.size() / 2));
  throw Crashed{};
}

std::unique_ptr<claim::QueueSession> Process::connect() {
  auto session = std::make_unique<PlayedSession>(*this);
  socket_ = session->socket();
  return session;
}

void Process::wait(int socket, TimePoint until) {
  begin(Step::wait);
  const auto wakes = [this, socket] {
    return stop_ || reload_ || output_is_closed() || world_.time.is_readable(socket);
  };
  if (now() < until && !wakes()) block(until, wakes);
  if (output_is_closed()) throw Error(ExitCode::output_closed, "the output has been closed");
}

void Process::sleep_for(Milliseconds duration) {
  begin(Step::sleep);
  if (!stop_) block(now() + duration, [this] { return stop_; });
}

void Process::pause_for(Milliseconds duration) {
  begin(Step::sleep);
  block(now() + duration, [] { return false; });
}

consumer::Batcher::Options Process::batcher_options() const {
  const auto& knobs = world_.knobs;
  consumer::Batcher::Options options{knobs.batch_timeout, knobs.poll_interval, limit_};
  if (knobs.line_cost.count() > 0)
    options.adaptive = consumer::Batcher::Adaptive{.min_limit = 1, .line_cost = knobs.line_cost};
  return options;
}

consumer::CollectorSetup Process::setup() {
  static const auto key = crypto::Key::from_hex(std::string(64, 'a'), "the test");
  return {.connect = [this] { return connect(); },
          .session_identity = std::to_string(identity_),
          .key = key,
          .make_sink =
              [this] {
                return std::make_unique<carriers::LineSink>(std::make_unique<PlayedEncoder>(*this), output_);
              },
          .queues = {"mailroom"},
          .turns = {.batcher = batcher_options()},
          .healthcheck_interval = Milliseconds(3000)};
}

}  // namespace mailroom::test
