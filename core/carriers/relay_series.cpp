// Each carrier gets a copy of the settings with its own part of the list. epoll makes one descriptor of
// theirs.

#include "carriers/relay_series.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr std::string_view usual_kind = "smtp";

std::string_view kind_of_relay(std::string_view url) {
  const auto end = url.find("://");
  const auto scheme = lower_case(url.substr(0, end == std::string_view::npos ? 0 : end));
  for (const auto& kind : carrier_kinds()) {
    if (kind.carries == Carries::mails && std::ranges::count(kind.schemes, scheme) > 0) return kind.name;
  }
  return usual_kind;
}

const CarrierKind& built_kind(std::string_view name) {
  const auto& kind = *std::ranges::find(carrier_kinds(), name, &CarrierKind::name);
  if (kind.make != nullptr) return kind;
  throw Error(ExitCode::configuration,
              fmt::format("this mailroom is built without the relays of {}", kind.name),
              fmt::format("build it with -D {}=ON, or name a relay of smtp://", kind.option));
}

Settings with_relays(const Settings& settings, const RelayGroup& group) {
  auto changed = settings;
  changed.send.relay = group.relays;
  return changed;
}

std::vector<RelayGroup> configured_groups(const Settings& settings) {
  if (settings.send.relay.empty()) require_keys({"send.relay"}, settings);
  return relay_groups(settings.send.relay);
}

}  // namespace

std::vector<RelayGroup> relay_groups(std::string_view relays) {
  std::vector<RelayGroup> groups;
  for (const auto part : split(relays, ',')) {
    const auto kind = kind_of_relay(trimmed(part));
    if (kind == usual_kind && !groups.empty() && groups.back().kind == kind) {
      groups.back().relays += fmt::format(",{}", part);
    } else {
      groups.push_back({.kind = kind, .relays = std::string(part)});
    }
  }
  return groups;
}

RelaySeries::RelaySeries(std::vector<std::unique_ptr<Carrier>> carriers)
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

Carrier& RelaySeries::carrier_of(std::size_t& endpoint) const {
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

void RelaySeries::submit(Message message) {
  auto& carrier = carrier_of(message.endpoint);
  carrier.submit(std::move(message));
}

std::vector<Answer> RelaySeries::take() {
  std::vector<Answer> answers;
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

std::unique_ptr<Carrier> make_relays(const CarrierSetup& setup) {
  const auto groups = configured_groups(setup.settings);
  std::vector<std::unique_ptr<Carrier>> carriers;
  for (const auto& group : groups) {
    const auto own = with_relays(setup.settings, group);
    carriers.push_back(built_kind(group.kind).make({own, setup.log, setup.seed}));
  }
  if (carriers.size() == 1) return std::move(carriers.front());
  return std::make_unique<RelaySeries>(std::move(carriers));
}

std::vector<SinkFinding> check_relay_list(const Settings& settings) {
  std::vector<SinkFinding> findings;
  for (const auto& group : configured_groups(settings))
    std::ranges::move(built_kind(group.kind).check(with_relays(settings, group)),
                      std::back_inserter(findings));
  return findings;
}

}  // namespace mailroom
