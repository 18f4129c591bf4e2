// Each carrier gets a copy of the path with its own part of the relays. epoll makes one descriptor of
// theirs.

#include "carriers/relay_series.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"

namespace mailroom::carriers {
namespace {

const RelayKind& built(const RelayKind& kind) {
  if (kind.make != nullptr) return kind;
  throw Error(ExitCode::configuration,
              fmt::format("this mailroom is built without the relays of {}", kind.name),
              fmt::format("build it with -D {}=ON, or name a relay of smtp://", kind.option));
}

void require_relays(const config::RelayPath& path) {
  constexpr std::string_view key = "send.relay";
  if (path.targets.empty()) config::refuse_missing({path.name_of(key)}, key);
}

}  // namespace

std::vector<RelayGroup> relay_groups(const config::RelayPath& path) {
  std::vector<RelayGroup> groups;
  for (const auto& target : path.targets) {
    const auto& kind = kind_of_relay(target);
    if (kind.name != "smtp" || groups.empty() || groups.back().kind != &kind) {
      groups.push_back({.kind = &kind, .path = path});
      groups.back().path.targets.clear();
    }
    groups.back().path.targets.push_back(target);
  }
  return groups;
}

MailTraits mail_traits(const config::RelayPath& path) {
  const auto groups = relay_groups(path);
  if (groups.size() != 1) return {};
  auto traits = groups.front().kind->traits;
  if (path.rate) traits.together = 1;
  return traits;
}

RelaySeries::RelaySeries(std::vector<std::unique_ptr<delivery::Carrier>> carriers)
    : carriers_(std::move(carriers)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (const auto& carrier : carriers_) {
    sizes_.push_back(carrier->endpoints().size());
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, carrier->fd(), &event) != 0) {
      if (epoll_ >= 0) close(epoll_);
      throw Error(ExitCode::failed, "cannot wait for several relays: no descriptor is left");
    }
  }
}

RelaySeries::~RelaySeries() {
  close(epoll_);
}

delivery::Carrier& RelaySeries::carrier_of(std::size_t& endpoint) const {
  std::size_t i = 0;
  for (; endpoint >= sizes_[i]; ++i)
    endpoint -= sizes_[i];
  return *carriers_[i];
}

std::vector<std::string> RelaySeries::endpoints() const {
  std::vector<std::string> names;
  for (const auto& carrier : carriers_)
    std::ranges::move(carrier->endpoints(), std::back_inserter(names));
  return names;
}

void RelaySeries::submit(delivery::Message message) {
  auto& carrier = carrier_of(message.endpoint);
  carrier.submit(std::move(message));
}

std::vector<delivery::Answer> RelaySeries::take() {
  std::vector<delivery::Answer> answers;
  for (const auto& carrier : carriers_)
    std::ranges::move(carrier->take(), std::back_inserter(answers));
  return answers;
}

std::size_t RelaySeries::unfinished() const {
  std::size_t sum = 0;
  for (const auto& carrier : carriers_)
    sum += carrier->unfinished();
  return sum;
}

void RelaySeries::cancel() {
  for (const auto& carrier : carriers_)
    carrier->cancel();
}

int RelaySeries::ahead() const {
  int most = 0;
  for (const auto& carrier : carriers_)
    most = std::max(most, carrier->ahead());
  return most;
}

bool RelaySeries::asks_for_clearance() const {
  return std::ranges::all_of(carriers_, [](const auto& carrier) { return carrier->asks_for_clearance(); });
}

void RelaySeries::limit_connections(std::size_t endpoint, int most) {
  auto& carrier = carrier_of(endpoint);
  carrier.limit_connections(endpoint, most);
}

std::unique_ptr<delivery::Carrier> make_relays(const config::RelayPath& path) {
  require_relays(path);
  std::vector<std::unique_ptr<delivery::Carrier>> carriers;
  for (const auto& group : relay_groups(path))
    carriers.push_back(built(*group.kind).make(group.path));
  if (carriers.size() == 1) return std::move(carriers.front());
  return std::make_unique<RelaySeries>(std::move(carriers));
}

std::vector<SinkFinding> check_relay_list(const config::RelayPath& path, const mail::ConfiguredMail& mail) {
  require_relays(path);
  std::vector<SinkFinding> findings;
  for (const auto& group : relay_groups(path))
    std::ranges::move(built(*group.kind).check(group.path, mail), std::back_inserter(findings));
  return findings;
}

}  // namespace mailroom::carriers
