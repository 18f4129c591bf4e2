// The settings of send.* that shape every mail, parsed before the first one is written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "mail/address.hpp"
#include "mail/extra_header.hpp"
#include "mail/link_template.hpp"

namespace mailroom {

/// What the keys send.from, send.reply_to, send.link and send.headers mean; nullopt for a key without a
/// value.
struct ConfiguredMail {
  std::optional<Mailbox> from;
  std::optional<Mailbox> reply_to;
  std::optional<LinkTemplate> link;
  std::vector<ExtraHeader> headers;
};

/// Throws Error(configuration), with the key, its origin and the reason, for a value that is not valid.
ConfiguredMail parse_configured_mail(const Settings& settings);

}  // namespace mailroom
