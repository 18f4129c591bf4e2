// Requires send.relay and send.from before anything connects.

#include "cmd/send/send_setup.hpp"

#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "carriers/carriers.hpp"
#include "carriers/smtp/relay/configured_relays.hpp"
#include "mail/configured_mail.hpp"
#include "signing/configured_keys.hpp"

namespace mailroom {

namespace {

/// True if the mails of both go to the same relays, at the same rate, with the same login.
bool leaves_likewise(const SendSettings& one, const SendSettings& other) {
  const auto way = [](const SendSettings& send) {
    return std::tie(send.relay, send.password_file, send.token_file, send.token_command, send.ca_file,
                    send.ses_credentials_file, send.ses_configuration_set, send.ses_endpoint,
                    send.resend_key_file, send.resend_endpoint, send.hello_name, send.throttled_by,
                    send.rate);
  };
  return way(one) == way(other);
}

/// The writer of mails that leave: their bounces come back with an id.
std::shared_ptr<const MailWriter> sending_writer(const Settings& settings) {
  const auto& pattern = settings.send.bounce_address;
  if (pattern.empty()) return configured_writer(settings);
  return configured_writer(settings, BounceAddress(pattern, load_current_key(settings)));
}

/// As check_send_settings(), for the settings of one profile.
void check_profile(const Settings& settings, Log& log) {
  parse_configured_mail(settings);
  if (!settings.send.hello_name.empty()) check_hello_name(settings.send.hello_name);
  if (settings.send.relay.empty()) return;
  mail_carrier().make({settings, log});
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
  check_profile(settings, log);
  for (const auto& profile : settings.profiles)
    check_profile(with_profile(settings, profile.name), log);
  if (settings.send.relay.empty()) return;
  tell_of_missing_link(settings, log);
  tell_of_redirection(settings, log);
}

ConfiguredMails configured_mails(const Settings& settings) {
  ConfiguredMails mails{.profiles = nullptr, .lanes = {settings}};
  const auto profiles =
      std::make_shared<MailProfiles>(MailProfiles::Entry{.writer = sending_writer(settings), .lane = 0});
  for (const auto& profile : settings.profiles) {
    auto own = with_profile(settings, profile.name);
    auto lane = std::ranges::find_if(
        mails.lanes, [&](const Settings& other) { return leaves_likewise(own.send, other.send); });
    const auto place = static_cast<std::size_t>(lane - mails.lanes.begin());
    profiles->add(profile.name, {.writer = sending_writer(own), .lane = place});
    if (lane == mails.lanes.end()) mails.lanes.push_back(std::move(own));
  }
  mails.profiles = profiles;
  return mails;
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
