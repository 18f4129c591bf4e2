#include "support/fake_environment.hpp"

#include <algorithm>

namespace mailroom::test {
namespace {

constexpr int sockets_each = 1'000'000;

}  // namespace

void FakeEnvironment::at(Milliseconds since_start, std::function<void()> event) {
  at(start + since_start, std::move(event));
}

void FakeEnvironment::at(TimePoint time, std::function<void()> event) {
  events_.emplace(time, std::move(event));
}

int FakeEnvironment::add_sockets(std::function<bool(std::size_t)> readable) {
  readable_.push_back(std::move(readable));
  return static_cast<int>(readable_.size() - 1) * sockets_each;
}

bool FakeEnvironment::is_readable(int socket) const {
  const auto owner = static_cast<std::size_t>(socket / sockets_each);
  return readable_.at(owner)(static_cast<std::size_t>(socket % sockets_each));
}

void FakeEnvironment::step_to(TimePoint until) {
  const auto next = events_.begin();
  if (next == events_.end() || next->first > until) {
    now_ = std::max(now_, until);
    return;
  }
  now_ = std::max(now_, next->first);
  const auto event = std::move(next->second);
  events_.erase(next);
  event();
}

void FakeEnvironment::advance(Milliseconds duration) {
  const auto until = now_ + duration;
  while (now_ < until) {
    step_to(until);
  }
}

void FakeEnvironment::wait(int socket, TimePoint until) {
  while (now_ < until && !stop_ && !reload_ && !is_readable(socket)) {
    step_to(until);
  }
}

void FakeEnvironment::sleep_for(Milliseconds duration) {
  const auto until = now_ + duration;
  while (now_ < until && !stop_) {
    step_to(until);
  }
}

}  // namespace mailroom::test
