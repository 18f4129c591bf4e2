// Requires send.relay and send.from before anything connects.

#include "cmd/send/send_setup.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "carriers/relay_series.hpp"
#include "carriers/smtp/relay/configured_relays.hpp"
#include "mail/configured_mail.hpp"
#include "signing/configured_keys.hpp"

namespace mailroom {

namespace {

/// The writer of mails that leave: their bounces come back with an id.
std::shared_ptr<const MailWriter> sending_writer(const Settings& settings) {
  const auto& pattern = settings.send.bounce_address;
  if (pattern.empty()) return configured_writer(settings);
  return configured_writer(settings, BounceAddress(pattern, load_current_key(settings)));
}

/// As check_send_settings(), for the settings of one profile.
void check_profile(const Settings& settings) {
  parse_configured_mail(settings);
  const auto& path = settings.send.path;
  if (!path.hello_name.empty()) check_hello_name(path.hello_name);
  if (path.targets.empty()) return;
  make_relays(path);
  configured_writer(settings);
}

}  // namespace

void require_send_keys(const Settings& settings) {
  require_keys({"send.relay", "send.from"}, settings);
}

void tell_of_missing_link(const Settings& settings, Log& log) {
  if (settings.send.link.empty()) log.info("send.link is not set; a mail with a link waits until it is");
}

void tell_of_redirection(const Settings& settings, Log& log) {
  const auto& send = settings.send;
  if (send.redirect_to.empty() && send.allow.empty()) return;
  const auto allowed = joined(send.allow, ",");
  if (send.redirect_to.empty()) {
    log.warn("mails are cancelled unless send.allow has their address", {{"allow", allowed}});
  } else {
    log.warn("mails go to send.redirect_to instead of their recipients",
             {{"to", send.redirect_to}, {"allow", allowed.empty() ? "none" : allowed}});
  }
}

void check_send_settings(const Settings& settings, Log& log) {
  check_profile(settings);
  for (const auto& profile : settings.profiles)
    check_profile(with_profile(settings, profile.name));
  if (settings.send.path.targets.empty()) return;
  tell_of_missing_link(settings, log);
  tell_of_redirection(settings, log);
}

std::shared_ptr<const MailProfiles> configured_profiles(const Settings& settings) {
  const auto lanes = lanes_of(settings);
  const auto profiles =
      std::make_shared<MailProfiles>(MailProfiles::Entry{.writer = sending_writer(settings), .lane = 0});
  for (const auto& profile : settings.profiles) {
    const auto lane = std::ranges::find(lanes, profile.send.path) - lanes.begin();
    profiles->add(profile.name, {.writer = sending_writer(with_profile(settings, profile.name)),
                                 .lane = static_cast<std::size_t>(lane)});
  }
  return profiles;
}

std::vector<RelayPath> lanes_of(const Settings& settings) {
  std::vector<RelayPath> lanes{settings.send.path};
  for (const auto& profile : settings.profiles) {
    if (std::ranges::find(lanes, profile.send.path) == lanes.end()) lanes.push_back(profile.send.path);
  }
  return lanes;
}

DeliverySink::Way way_of(const RelayPath& path) {
  const auto traits = mail_traits(path);
  return {.carrier = make_relays(path),
          .rate = path.rate,
          .together = traits.together,
          .recognises = traits.recognises};
}

bool has_link(const Settings& settings) {
  return !settings.send.link.empty() || std::ranges::any_of(settings.profiles, [](const auto& profile) {
    return !profile.send.link.empty();
  });
}

DeliveryPolicy delivery_policy(const Settings& settings) {
  return {.when_unknown = settings.send.when_unknown,
          .supersede = settings.send.supersede,
          .per_recipient = settings.send.per_recipient};
}

std::shared_ptr<const MailWriter> configured_writer(const Settings& settings,
                                                    std::optional<BounceAddress> bounce_address) {
  const auto mail = parse_configured_mail(settings);
  require_keys({"send.from"}, settings);
  return std::make_shared<MailWriter>(*mail.from, MessageBuilder(*mail.from, mail.reply_to, mail.headers),
                                      load_templates(settings.send.templates), mail.link,
                                      static_cast<std::size_t>(settings.send.max_size), mail.redirection,
                                      std::move(bounce_address));
}

}  // namespace mailroom
