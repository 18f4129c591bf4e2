// Requires send.relay and send.from before anything connects.

#include "cmd/send/send_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "carriers/smtp/configured_relays.hpp"
#include "mail/configured_mail.hpp"

namespace mailroom {

void require_send_keys(const Settings& settings) {
  require_keys({"send.relay", "send.from"}, settings);
}

void tell_of_missing_link(const Settings& settings, Log& log) {
  if (settings.send.link.empty()) log.info("send.link is not set; a mail with a link waits until it is");
}

void tell_of_redirection(const Settings& settings, Log& log) {
  const auto& send = settings.send;
  if (send.redirect_to.empty() && send.allow.empty()) return;
  const auto allowed = fmt::format("{}", fmt::join(send.allow, ","));
  if (send.redirect_to.empty()) {
    log.warn("mails are cancelled unless send.allow has their address", {{"allow", allowed}});
  } else {
    log.warn("mails go to send.redirect_to instead of their recipients",
             {{"to", send.redirect_to}, {"allow", allowed.empty() ? "none" : allowed}});
  }
}

void check_send_settings(const Settings& settings, Log& log) {
  parse_configured_mail(settings);
  if (!settings.send.hello_name.empty()) check_hello_name(settings.send.hello_name);
  if (settings.send.relay.empty()) return;
  read_relays(settings);
  configured_writer(settings);
  tell_of_missing_link(settings, log);
  tell_of_redirection(settings, log);
}

DeliveryPolicy delivery_policy(const Settings& settings) {
  return {.when_unknown = settings.send.when_unknown,
          .supersede = settings.send.supersede,
          .per_recipient = settings.send.per_recipient};
}

std::shared_ptr<const MailWriter> configured_writer(const Settings& settings) {
  const auto mail = parse_configured_mail(settings);
  require_keys({"send.from"}, settings);
  return std::make_shared<MailWriter>(*mail.from, MessageBuilder(*mail.from, mail.reply_to, mail.headers),
                                      load_templates(settings.send.templates), mail.link,
                                      static_cast<std::size_t>(settings.send.max_size), mail.redirection);
}

}  // namespace mailroom
