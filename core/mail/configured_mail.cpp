// Turns a parser's refusal into an error that names the key, its origin and how to write the value.

#include "mail/configured_mail.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "config/parse_value.hpp"

namespace mailroom {
namespace {

[[noreturn]] void refuse_setting(const Settings& settings, std::string_view key, const Refusal& refusal,
                                 const std::string& hint) {
  throw Error(ExitCode::configuration,
              fmt::format("{} ({}): {}", key, describe(setting_of(settings, key).origin), refusal.reason),
              hint);
}

std::optional<Mailbox> read_mailbox(const Settings& settings, std::string_view key, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto mailbox = parse_mailbox(text);
  if (const auto* refusal = std::get_if<Refusal>(&mailbox)) {
    refuse_setting(
        settings, key, *refusal,
        refusal->reason == several_mailboxes
            ? "keep one: mails have one sender, and answers go to one address; a name with a comma stands "
              "in quotes, as \"Example, Inc.\" <no-reply@app.example>"
            : "write it as no-reply@app.example or Example <no-reply@app.example>");
  }
  return std::get<Mailbox>(std::move(mailbox));
}

std::optional<LinkTemplate> read_link(const Settings& settings) {
  if (settings.send.link.empty()) return std::nullopt;
  auto link = LinkTemplate::parse(settings.send.link);
  if (const auto* refusal = std::get_if<Refusal>(&link)) {
    refuse_setting(settings, "send.link", {"the link " + refusal->reason},
                   "for example https://app.example/{action}?token={token}");
  }
  return std::get<LinkTemplate>(std::move(link));
}

std::vector<ExtraHeader> read_headers(const Settings& settings) {
  auto headers = parse_extra_headers(settings.send.headers);
  if (const auto* refusal = std::get_if<Refusal>(&headers)) {
    refuse_setting(settings, "send.headers", *refusal,
                   "write each as 'X-Name: value'; a value with a comma needs the configuration file");
  }
  return std::get<std::vector<ExtraHeader>>(std::move(headers));
}

}  // namespace

ConfiguredMail parse_configured_mail(const Settings& settings) {
  return {.from = read_mailbox(settings, "send.from", settings.send.from),
          .reply_to = read_mailbox(settings, "send.reply_to", settings.send.reply_to),
          .link = read_link(settings),
          .headers = read_headers(settings)};
}

}  // namespace mailroom
