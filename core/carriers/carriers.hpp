// The list of carriers: which setting asks for each, and how it is made and checked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "delivery/carrier.hpp"
#include "mail/configured_mail.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::carriers {

/// What a carrier of lines is made from.
struct CarrierSetup {
  const config::Settings& settings;  ///< not kept
  Log& log;                          ///< outlives the carrier
  std::uint64_t seed = 0;            ///< of jitter
  bool has_svix_headers = false;     ///< of HTTP: beside those of Standard Webhooks
};

/// What a carrier takes.
enum class Carries {
  lines,  ///< sink.to or sink.exec asks for it
  mails,  ///< send.relay does
};

/// What `mailroom doctor` found out about a sink.
struct SinkFinding {
  enum class Level { fine, warning, failure };
  Level level = Level::fine;
  std::string reason;              ///< on one line, without a secret
  std::string hint{};              ///< what to do about it
  std::vector<status::Fix> fix{};  ///< they may run on another host
  std::string endpoint{};          ///< which one, if the carrier has several
};

/// What a kind does with mails beside taking each by itself.
struct MailTraits {
  int together = 1;         ///< how many it takes in one message
  bool recognises = false;  ///< a message that it has, so that it takes it once, however often it is sent
};

/// What a directory of core/carriers does that carries lines: NAME_carrier of its carrier.cpp. Null if it is
/// not built.
struct CarrierFunctions {
  /// Throws Error(configuration) for a setting that is wrong, here or at the receiver, and not if no server
  /// can be reached.
  std::unique_ptr<delivery::Carrier> (*make)(const CarrierSetup& setup) = nullptr;
  /// Connects, and hands nothing over. Throws Error(configuration).
  std::vector<SinkFinding> (*check)(const config::Settings& settings) = nullptr;
  std::string (*library)() = nullptr;  ///< its library and version: `libcurl 7.88.1`; null for none
};

/// The same of a directory that carries mails. It sees of the configuration what its own relays are for.
struct RelayFunctions {
  /// `path`: with targets of this kind alone; not kept. Throws as CarrierFunctions::make().
  std::unique_ptr<delivery::Carrier> (*make)(const config::RelayPath& path) = nullptr;
  /// Connects, and sends no mail. `mail`: what the mails of the path are like. Throws Error(configuration).
  std::vector<SinkFinding> (*check)(const config::RelayPath& path,
                                    const mail::ConfiguredMail& mail) = nullptr;
  std::string (*library)() = nullptr;
  MailTraits traits{};
};

/// How a kind is asked for.
struct KindName {
  std::string_view name;                  ///< `http`
  std::vector<std::string_view> schemes;  ///< of the URLs that ask for it; none: sink.exec
  std::string_view option{};              ///< the CMake option that it is built with; empty: it always is
};

/// A way of lines out of the database.
struct CarrierKind : CarrierFunctions, KindName {};
/// A way of mails.
struct RelayKind : RelayFunctions, KindName {};

/// Every kind, also those that are not built.
std::span<const CarrierKind> carrier_kinds();
std::span<const RelayKind> relay_kinds();

/// A key that is set, though no carrier that the settings ask for reads it: a mistake, or left from another
/// one.
struct UnreadSetting {
  config::SettingValue value;
  std::string readers;  ///< the kinds that do: `nats and amqp`
};

/// Of sink.to and sink.exec, or of the relays of all profiles. None while mails are captured. Throws as
/// configured_carrier().
std::vector<UnreadSetting> unread_settings(const config::Settings& settings, Carries carries);

/// True if sink.to or sink.exec says where batches are handed over; otherwise they are written to stdout.
bool hands_over(const config::Settings& settings);

/// The kind of a relay: what has no scheme of another is one of SMTP, whose carrier refuses it. Pure.
const RelayKind& kind_of_relay(const config::RelayTarget& target);

/// The kind that sink.to or sink.exec asks for. Throws Error(configuration) for a URL of an unknown scheme,
/// and for a kind that is not built.
const CarrierKind& configured_carrier(const config::Settings& settings);

}  // namespace mailroom::carriers
