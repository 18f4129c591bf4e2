// The relays of a path where they are of several kinds: a carrier for each provider, and for neighbours
// that speak SMTP.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carriers/carriers.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::carriers {

/// A part of a path that one carrier takes.
struct RelayGroup {
  const RelayKind* kind;
  config::RelayPath path;
};

/// Parts the relays before and after each that is not of SMTP. Pure.
std::vector<RelayGroup> relay_groups(const config::RelayPath& path);

/// Several carriers as one: their endpoints one after the other. The Dispatcher gives a message to the first
/// endpoint that is available, whichever carrier has it.
class RelaySeries final : public delivery::Carrier {
 public:
  /// Takes at least one carrier. Throws Error(failed) if the system has no descriptor left.
  explicit RelaySeries(std::vector<std::unique_ptr<delivery::Carrier>> carriers);
  ~RelaySeries() override;
  RelaySeries(const RelaySeries&) = delete;
  RelaySeries& operator=(const RelaySeries&) = delete;

  std::vector<std::string> endpoints() const override;
  void submit(delivery::Message message) override;
  int fd() const override { return epoll_; }
  std::vector<delivery::Answer> take() override;
  std::size_t unfinished() const override;
  void cancel() override;
  int ahead() const override;
  bool asks_for_clearance() const override;
  void limit_connections(std::size_t endpoint, int most) override;

 private:
  /// Whose endpoint this is. Makes `endpoint` its place among that carrier's own.
  delivery::Carrier& carrier_of(std::size_t& endpoint) const;

  std::vector<std::unique_ptr<delivery::Carrier>> carriers_;
  std::vector<std::size_t> sizes_;  ///< how many endpoints each carrier has
  int epoll_;                       ///< readable while a carrier's descriptor is
};

/// The traits of the kind, if all relays of a path are of one carrier. Mails leave one by one where they have
/// a rate.
MailTraits mail_traits(const config::RelayPath& path);

/// The carrier of a path, which is not kept. Throws Error(configuration) for one without relays, for what a
/// kind refuses, and for a kind that is not built.
std::unique_ptr<delivery::Carrier> make_relays(const config::RelayPath& path);

/// What each kind finds out about its relays, in their order, for such mails. Throws Error(configuration) as
/// make_relays().
std::vector<SinkFinding> check_relay_list(const config::RelayPath& path, const mail::ConfiguredMail& mail);

}  // namespace mailroom::carriers
