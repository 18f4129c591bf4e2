// Requires send.relay and send.from before anything connects.

#include "cmd/send/send_setup.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "carriers/relay_series.hpp"
#include "carriers/smtp/relay/configured_relays.hpp"
#include "mail/configured_mail.hpp"
#include "mail/subscription_link.hpp"
#include "signing/configured_keys.hpp"

namespace mailroom::cmd {

namespace {

std::shared_ptr<const compose::MailWriter> writer_of(const config::Settings& settings,
                                                     templates::TemplateStore& templates,
                                                     std::optional<mail::BounceAddress> bounce_address,
                                                     std::optional<mail::SubscriptionLinks> subscriptions) {
  const auto mail = mail::parse_configured_mail(settings);
  config::require_keys({"send.from"}, settings);
  return std::make_shared<compose::MailWriter>(
      *mail.from, mail::MessageBuilder(*mail.from, mail.reply_to, mail.headers),
      templates.load(settings.send.templates), mail.link, static_cast<std::size_t>(settings.send.max_size),
      mail.redirection, std::move(bounce_address), std::move(subscriptions));
}

/// As check_send_settings(), for the settings of one profile. `is_new`: no profile before has its path.
void check_profile(const config::Settings& settings, bool is_new, templates::TemplateStore& templates) {
  mail::parse_configured_mail(settings);
  const auto& path = settings.send.path;
  if (!path.hello_name.empty()) smtp::check_hello_name(path.hello_name);
  if (path.targets.empty()) return;
  if (is_new) carriers::make_relays(path);
  writer_of(settings, templates, std::nullopt, std::nullopt);
}

}  // namespace

void require_send_keys(const config::Settings& settings) {
  config::require_keys({"send.relay", "send.from"}, settings);
}

void tell_of_missing_link(const config::Settings& settings, Log& log) {
  if (settings.send.link.empty()) log.info("send.link is not set; a mail with a link waits until it is");
}

void tell_of_redirection(const config::Settings& settings, Log& log) {
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

void check_send_settings(const config::Settings& settings, Log& log) {
  templates::TemplateStore templates;
  std::vector<config::RelayPath> paths;
  const auto check = [&](const config::Settings& of) {
    const bool is_new = std::ranges::find(paths, of.send.path) == paths.end();
    if (is_new) paths.push_back(of.send.path);
    check_profile(of, is_new, templates);
  };
  check(settings);
  for (const auto& profile : settings.profiles)
    check(config::with_profile(settings, profile.name));
  if (settings.send.path.targets.empty()) return;
  tell_of_missing_link(settings, log);
  tell_of_redirection(settings, log);
}

std::shared_ptr<const compose::MailProfiles> configured_profiles(const config::Settings& settings,
                                                                 templates::TemplateStore* store) {
  templates::TemplateStore own;
  auto& templates = store == nullptr ? own : *store;
  const auto lanes = lanes_of(settings);
  const auto key = signing::load_current_key(settings);
  // What comes back of mails that leave shows an id.
  const auto sending_writer = [&](const config::Settings& of) {
    return writer_of(of, templates, mail::BounceAddress(of.send.bounce_address, key),
                     mail::SubscriptionLinks(of.send.unsubscribe_link, of.send.unsubscribe_mailto, key));
  };
  const auto profiles = std::make_shared<compose::MailProfiles>(
      compose::MailProfiles::Entry{.writer = sending_writer(settings), .lane = 0});
  if (settings.send.evidence) profiles->record_evidence();
  for (const auto& profile : settings.profiles) {
    const auto lane = std::ranges::find(lanes, profile.send.path) - lanes.begin();
    profiles->add(profile.name, {.writer = sending_writer(config::with_profile(settings, profile.name)),
                                 .lane = static_cast<std::size_t>(lane)});
  }
  return profiles;
}

std::vector<config::RelayPath> lanes_of(const config::Settings& settings) {
  std::vector<config::RelayPath> lanes{settings.send.path};
  for (const auto& profile : settings.profiles) {
    if (std::ranges::find(lanes, profile.send.path) == lanes.end()) lanes.push_back(profile.send.path);
  }
  return lanes;
}

delivery::DeliverySink::Way way_of(const config::RelayPath& path) {
  const auto traits = carriers::mail_traits(path);
  return {.carrier = carriers::make_relays(path),
          .rate = path.rate,
          .together = traits.together,
          .recognises = traits.recognises};
}

bool has_link(const config::Settings& settings) {
  return !settings.send.link.empty() || std::ranges::any_of(settings.profiles, [](const auto& profile) {
    return !profile.send.link.empty();
  });
}

delivery::DeliveryPolicy delivery_policy(const config::Settings& settings) {
  return {.when_unknown = settings.send.when_unknown,
          .supersede = settings.send.supersede,
          .per_recipient = settings.send.per_recipient,
          .suppress_refused = settings.send.suppress_refused};
}

std::shared_ptr<const compose::MailWriter> configured_writer(
    const config::Settings& settings, std::optional<mail::BounceAddress> bounce_address) {
  templates::TemplateStore templates;
  return writer_of(settings, templates, std::move(bounce_address), std::nullopt);
}

}  // namespace mailroom::cmd
