// The relays of send.relay where they are of several kinds: a carrier for each provider, and for neighbours
// that speak SMTP.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carriers/carriers.hpp"
#include "delivery/carrier.hpp"

namespace mailroom {

/// A part of a list of relays that one carrier takes.
struct RelayGroup {
  std::string_view kind;  ///< the name of the CarrierKind
  std::string relays;     ///< their URLs, separated by commas

  bool operator==(const RelayGroup&) const = default;
};

/// Splits the text of send.relay before and after each relay that is not of SMTP. What begins with no scheme
/// of a kind that carries mails belongs to `smtp`, which refuses it. A list of SMTP relays stays as it is
/// written. Pure.
std::vector<RelayGroup> relay_groups(std::string_view relays);

/// Several carriers as one: their endpoints one after the other. The Dispatcher gives a message to the first
/// endpoint that is available, whichever carrier has it.
class RelaySeries final : public Carrier {
 public:
  /// Takes at least one carrier. Throws Error(failed) if the system has no descriptor left.
  explicit RelaySeries(std::vector<std::unique_ptr<Carrier>> carriers);
  ~RelaySeries() override;
  RelaySeries(const RelaySeries&) = delete;
  RelaySeries& operator=(const RelaySeries&) = delete;

  std::vector<std::string> endpoints() const override;
  void submit(Message message) override;
  int fd() const override { return epoll_; }
  std::vector<Answer> take() override;
  std::size_t unfinished() const override;
  void cancel() override;
  int ahead() const override;
  bool asks_for_clearance() const override;
  void limit_connections(std::size_t endpoint, int most) override;

 private:
  /// Whose endpoint this is. Makes `endpoint` its place among that carrier's own.
  Carrier& carrier_of(std::size_t& endpoint) const;

  std::vector<std::unique_ptr<Carrier>> carriers_;
  std::vector<std::size_t> sizes_;  ///< how many endpoints each carrier has
  int epoll_;                       ///< readable while a carrier's descriptor is
};

/// The carrier of send.relay. Throws Error(configuration) for what a kind refuses, and for a kind that is not
/// built.
std::unique_ptr<Carrier> make_relays(const CarrierSetup& setup);

/// What each kind finds out about its relays, in their order. Throws Error(configuration) as make_relays().
std::vector<SinkFinding> check_relay_list(const Settings& settings);

}  // namespace mailroom
