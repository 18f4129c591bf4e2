// The settings of send.* that shape every mail, send.headers among them, parsed before the first one is
// written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/settings.hpp"
#include "mail/address.hpp"
#include "mail/link_template.hpp"
#include "mail/redirection.hpp"

namespace mailroom::mail {

/// A header that the operator adds to each mail, or a message to its own.
struct ExtraHeader {
  std::string name;
  std::string value;

  bool operator==(const ExtraHeader&) const = default;
};

/// Reads each item as `Name: value`. The name has letters, digits and hyphens, is given once and is not one
/// that mailroom writes itself or that changes who receives the mail; the value is printable, and of a header
/// whose value is addresses, ids or URLs ASCII. A refusal names the item by its number.
std::variant<std::vector<ExtraHeader>, Refusal> parse_extra_headers(const std::vector<std::string>& items);

/// Reads the headers of a message, an object of JSON with a text for each name, or an empty text. Refuses
/// what parse_extra_headers() does, but for a Message-ID.
std::variant<std::vector<ExtraHeader>, Refusal> parse_message_headers(std::string_view json);

/// Removes the Message-ID from `headers`, and returns it; empty if there is none.
std::string take_message_id(std::vector<ExtraHeader>& headers);

/// What the keys send.from, send.reply_to, send.link, send.headers, send.redirect_to and send.allow mean;
/// nullopt or empty for a key without a value.
struct ConfiguredMail {
  std::optional<Mailbox> from;
  std::vector<Mailbox> reply_to;
  std::optional<LinkTemplate> link;
  std::vector<ExtraHeader> headers;
  Redirection redirection;
};

/// Throws Error(configuration), with the key, its origin and the reason, for a value that is not valid.
ConfiguredMail parse_configured_mail(const config::Settings& settings);

}  // namespace mailroom::mail
