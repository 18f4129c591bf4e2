#include "fault/crew.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace mailroom::test {
namespace {

std::uintmax_t size_of(const TestCollector& collector) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(collector.output_path(), absent);
  return absent ? 0 : size;
}

}  // namespace

Crew::Crew(std::string conninfo, int size, std::vector<std::string> options,
           std::map<std::string, std::string> environment, std::vector<std::string> serving)
    : conninfo_(std::move(conninfo)),
      options_(std::move(options)),
      environment_(std::move(environment)),
      serving_(std::move(serving)) {
  for (int i = 0; i < size; ++i)
    members_.push_back(make(members_.size()));
}

Crew::~Crew() {
  end_watch();
}

std::unique_ptr<TestCollector> Crew::make(std::size_t index) const {
  auto options = options_;
  if (!serving_.empty()) options.insert(options.end(), {"--queue", serving_.at(index)});
  return std::make_unique<TestCollector>(conninfo_, std::move(options), environment_);
}

void Crew::hire(std::string conninfo) {
  const std::lock_guard lock(lock_);
  conninfo_ = std::move(conninfo);
  members_.push_back(make(members_.size()));
}

void Crew::move_to(std::string conninfo) {
  const std::lock_guard lock(lock_);
  conninfo_ = std::move(conninfo);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    bytes_of_gone_ += size_of(*members_[i]);
    gone_.push_back(std::exchange(members_[i], make(i)));
  }
}

int Crew::replace(int index, int signal) {
  const auto at = static_cast<std::size_t>(index);
  auto& place = members_.at(at);
  place->process().signal(signal);
  const int status = place->process().wait();
  const std::lock_guard lock(lock_);
  bytes_of_gone_ += size_of(*place);
  gone_.push_back(std::move(place));
  place = make(at);
  return status;
}

void Crew::keep(std::string output) {
  const std::lock_guard lock(lock_);
  kept_.push_back(std::move(output));
}

std::vector<int> Crew::stop() {
  std::vector<int> statuses;
  for (const auto& member : members_) {
    member->process().await_handler(SIGTERM);
    member->process().signal(SIGTERM);
  }
  for (const auto& member : members_)
    statuses.push_back(member->process().wait());
  return statuses;
}

std::vector<std::string> Crew::outputs() const {
  const std::lock_guard lock(lock_);
  auto all = kept_;
  for (const auto* group : {&members_, &gone_}) {
    for (const auto& collector : *group)
      all.push_back(collector->output());
  }
  return all;
}

std::vector<std::string> Crew::logs() const {
  const std::lock_guard lock(lock_);
  std::vector<std::string> all;
  for (const auto* group : {&members_, &gone_}) {
    for (const auto& collector : *group)
      all.push_back(collector->log());
  }
  return all;
}

std::uintmax_t Crew::bytes() const {
  const std::lock_guard lock(lock_);
  auto sum = bytes_of_gone_;
  for (const auto& member : members_)
    sum += size_of(*member);
  return sum;
}

bool Crew::writes_again(std::chrono::seconds patience) const {
  const auto before = bytes();
  return eventually([&] { return bytes() != before; }, patience);
}

void Crew::begin_watch() {
  watching_ = true;
  watcher_ = std::thread([this] { watch(); });
}

Milliseconds Crew::end_watch() {
  watching_ = false;
  if (watcher_.joinable()) watcher_.join();
  return longest_;
}

void Crew::watch() {
  auto seen = bytes();
  auto since = std::chrono::steady_clock::now();
  while (watching_) {
    std::this_thread::sleep_for(Milliseconds(5));
    const auto now = std::chrono::steady_clock::now();
    longest_ = std::max(longest_, std::chrono::duration_cast<Milliseconds>(now - since));
    if (const auto size = bytes(); size != seen) {
      seen = size;
      since = now;
    }
  }
}

}  // namespace mailroom::test
