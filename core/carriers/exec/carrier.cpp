// Knows by the fill of the pipe which lines the program has read, and so which it may have taken.

#include "carriers/exec/carrier.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::exec {
namespace {

constexpr std::size_t output_size = 65'536;
constexpr std::size_t read_size = 65'536;
constexpr std::size_t longest_farewell = 1 << 20;  ///< what is read of a program that has ended
constexpr Milliseconds shortest_pause{250};
constexpr Milliseconds longest_pause{5000};
constexpr Milliseconds stop_grace{5000};
constexpr Milliseconds term_grace{1000};

/// The program, and the host that it runs on: the same program may work on another one.
std::string name_of(const std::string& program) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return printable(fmt::format("{}@{}", program, host.data()));
}

bool ends_within(const ExecChild& child, Milliseconds time) {
  pollfd fd{child.process(), POLLIN, 0};
  return poll(&fd, 1, static_cast<int>(time.count())) > 0;
}

}  // namespace

ExecCarrier::ExecCarrier(Options options, Log& log)
    : options_(std::move(options)),
      log_(log),
      name_(name_of(options_.words.front())),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (events_ < 0 || timer_ < 0) throw Error(ExitCode::failed, "cannot make a descriptor");
  watch(timer_, EPOLLIN, EPOLL_CTL_ADD);
  watch(ready_.fd(), EPOLLIN, EPOLL_CTL_ADD);
  start();
}

ExecCarrier::~ExecCarrier() {
  if (child_) {
    child_->close_input();
    if (!ends_within(*child_, stop_grace)) {
      log_.warn("the program does not end with its input, and is ended", {{"program", name_}});
      child_->signal(SIGTERM);
      ends_within(*child_, term_grace);
    }
  }
  child_.reset();
  for (const int fd : {events_, timer_})
    close(fd);
}

void ExecCarrier::watch(int fd, std::uint32_t events, int operation) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(events_, operation, fd, &event);
}

void ExecCarrier::start() {
  child_ = std::make_unique<ExecChild>(options_.words, options_.ack_on);
  filled_ = 0;
  written_ = 0;
  strangers_ = 0;
  has_answered_ = false;
  takes_input_ = true;
  waits_to_write_ = false;
  watch(child_->input(), 0, EPOLL_CTL_ADD);
  watch(child_->answers(), EPOLLIN, EPOLL_CTL_ADD);
  watch(child_->process(), EPOLLIN, EPOLL_CTL_ADD);
  progress_ = steady_now();
}

void ExecCarrier::try_start() {
  if (child_ || steady_now() < next_start_) return;
  try {
    start();
    log_.info("the program is started again", {{"program", name_}});
  } catch (const Error& error) {
    why_ = error.what();
    pause_ = longest_pause;
    next_start_ = steady_now() + pause_;
  }
}

void ExecCarrier::submit(delivery::Message message) {
  serve();
  end_if_deaf();
  try_start();
  const auto now = steady_now();
  if (child_ && !message.is_cleared()) {
    // It was started only now.
    if (answers_.empty()) ready_.signal();
    answers_.push_back({.id = message.id, .was_tried = false});
    return;
  }
  if (given_.empty()) {
    progress_ = now;
    arm(now + options_.timeout);
  }
  auto id = message.message_id;
  auto& given = given_[id];
  given = {.message = std::move(message), .submitted = now};
  if (!child_) {
    answer(given, delivery::Verdict::unavailable, why_);
    given_.erase(id);
    return;
  }
  unsent_.push_back(std::move(id));
  if (takes_input_ && !std::exchange(waits_to_write_, true)) watch(child_->input(), EPOLLOUT, EPOLL_CTL_MOD);
}

std::vector<delivery::Answer> ExecCarrier::take() {
  serve();
  ready_.clear();
  return std::exchange(answers_, {});
}

void ExecCarrier::cancel() {
  if (child_) read_answers(longest_farewell);
  const auto read = child_ ? read_so_far() : 0;
  for (const auto& [id, given] : given_) {
    const bool was_read = given.end != 0 && read + 1 >= given.end;
    answer(given, was_read ? delivery::Verdict::unknown : delivery::Verdict::unavailable,
           "stopped before the program answered");
  }
  given_.clear();
  unsent_.clear();
  // What is half written has no end that the program could take it for a line by.
  output_.clear();
  if (child_) child_->close_input();
  takes_input_ = false;
}

void ExecCarrier::serve() {
  std::array<epoll_event, 8> events{};
  const int count = epoll_wait(events_, events.data(), static_cast<int>(events.size()), 0);
  bool has_ended = false;
  for (int i = 0; i < count; ++i) {
    const int fd = events.at(static_cast<std::size_t>(i)).data.fd;
    if (fd == timer_) check_time();
    if (!child_) continue;
    if (fd == child_->answers()) read_answers(read_size);
    if (child_ && fd == child_->process()) has_ended = true;
    if (child_ && fd == child_->input() && takes_input_) write_lines();
  }
  if (has_ended && child_) {
    read_answers(longest_farewell);
    const auto how = child_ ? child_->ended() : std::nullopt;
    if (how) end(*how);
  }
}

void ExecCarrier::fill() {
  while (output_.size() < output_size && !unsent_.empty()) {
    auto& given = given_.find(unsent_.front())->second;
    const auto before = output_.size();
    append_format(output_, "{} {} ", given.message.message_id, given.message.attempt);
    output_ += given.message.body;
    output_ += '\n';
    filled_ += output_.size() - before;
    given.end = filled_;
    unsent_.pop_front();
  }
}

void ExecCarrier::write_lines() {
  for (;;) {
    fill();
    if (output_.empty()) break;
    const auto count = write(child_->input(), output_.data(), output_.size());
    if (count > 0) {
      output_.erase(0, static_cast<std::size_t>(count));
      written_ += static_cast<std::uint64_t>(count);
    } else if (count < 0 && errno != EINTR) {
      if (errno == EAGAIN) return;
      takes_input_ = false;
      watch(child_->input(), 0, EPOLL_CTL_DEL);
      return end_if_deaf();
    }
  }
  waits_to_write_ = false;
  watch(child_->input(), 0, EPOLL_CTL_MOD);
}

void ExecCarrier::answer(const Given& given, delivery::Verdict verdict, std::string reply) {
  if (answers_.empty()) ready_.signal();
  answers_.push_back({.id = given.message.id,
                      .verdict = verdict,
                      .sink = name_,
                      .code = 0,
                      .reply = std::move(reply),
                      .took = steady_now() - given.submitted,
                      .ended = wall_now(),
                      .tokens = given.failures});
}

std::uint64_t ExecCarrier::read_so_far() const {
  return written_ - std::min<std::uint64_t>(written_, child_->unread());
}

void ExecCarrier::end_if_deaf() {
  if (!child_ || takes_input_) return;
  const auto read = read_so_far();
  const auto was_read = [&](const auto& given) {
    return given.second.end != 0 && read + 1 >= given.second.end;
  };
  if (std::ranges::any_of(given_, was_read)) return;
  // A program that ends closes its stdin a moment before its end shows, which says more.
  constexpr int moment_ms = 100;
  pollfd process{child_->process(), POLLIN, 0};
  poll(&process, 1, moment_ms);
  end(child_->ended().value_or("closed its stdin"));
}

void ExecCarrier::end(const std::string& why) {
  const auto read = read_so_far();
  child_.reset();
  why_ = fmt::format("the program {}", why);
  log_.warn("the program has ended", {{"program", name_}, {"reason", why}});
  output_.clear();
  input_.clear();
  unsent_.clear();
  if (!has_answered_) pause_ = std::clamp(2 * pause_, shortest_pause, longest_pause);
  next_start_ = steady_now() + pause_;
  std::vector<std::pair<std::int64_t, std::string>> again;
  for (auto at = given_.begin(); at != given_.end();) {
    auto& given = at->second;
    const bool was_read = given.end != 0 && read + 1 >= given.end;
    if (!was_read && has_answered_) {
      given.end = 0;
      given.failures.clear();
      again.emplace_back(given.message.id, at->first);
      ++at;
      continue;
    }
    answer(given, was_read ? delivery::Verdict::unknown : delivery::Verdict::unavailable, why_);
    at = given_.erase(at);
  }
  if (again.empty()) return;
  std::ranges::sort(again);
  for (auto& [id, message_id] : again)
    unsent_.push_back(std::move(message_id));
  try_start();
  if (!child_) return cancel();
  waits_to_write_ = true;
  watch(child_->input(), EPOLLOUT, EPOLL_CTL_MOD);
}

void ExecCarrier::check_time() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto size = read(timer_, &count, sizeof count);
  if (given_.empty() || !child_) return;
  const auto deadline = progress_ + options_.timeout;
  if (steady_now() < deadline) return arm(deadline);
  has_answered_ = false;
  end(fmt::format("did not answer within {}, and was killed", format_duration(options_.timeout)));
}

void ExecCarrier::arm(TimePoint when) const {
  const auto left = std::max<std::chrono::nanoseconds>(when - steady_now(), Milliseconds(1));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  itimerspec time{};
  time.it_value.tv_sec = seconds.count();
  time.it_value.tv_nsec = (left - seconds).count();
  timerfd_settime(timer_, 0, &time, nullptr);
}

}  // namespace mailroom::exec
