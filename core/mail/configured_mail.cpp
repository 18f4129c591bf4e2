// Turns a parser's refusal into an error that names the key, its origin and how to write the value.

#include "mail/configured_mail.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "config/parse_value.hpp"
#include "mail/bounce_address.hpp"
#include "mail/subscription_link.hpp"

namespace mailroom::mail {
namespace {

[[noreturn]] void refuse_setting(const config::Settings& settings, std::string_view key,
                                 const Refusal& refusal, const std::string& hint) {
  const auto& value = config::setting_of(settings, key);
  throw Error(ExitCode::configuration,
              fmt::format("{} ({}): {}", value.name(), config::describe(value.origin), refusal.reason), hint);
}

std::optional<Mailbox> read_sender(const config::Settings& settings) {
  if (settings.send.from.empty()) return std::nullopt;
  auto mailbox = parse_mailbox(settings.send.from);
  if (const auto* refusal = std::get_if<Refusal>(&mailbox)) {
    refuse_setting(
        settings, "send.from", *refusal,
        refusal->reason == several_mailboxes
            ? "keep one: mails have one sender; a name with a comma stands in quotes, as \"Example, "
              "Inc.\" <no-reply@app.example>"
            : "write it as no-reply@app.example or Example <no-reply@app.example>");
  }
  return std::get<Mailbox>(std::move(mailbox));
}

std::vector<Mailbox> read_reply_to(const config::Settings& settings) {
  if (settings.send.reply_to.empty()) return {};
  auto mailboxes = parse_mailboxes(settings.send.reply_to);
  if (const auto* refusal = std::get_if<Refusal>(&mailboxes))
    refuse_setting(settings, "send.reply_to", *refusal,
                   "write it as help@app.example or Help <help@app.example>, with commas between several");
  return std::get<std::vector<Mailbox>>(std::move(mailboxes));
}

std::optional<LinkTemplate> read_link(const config::Settings& settings) {
  if (settings.send.link.empty()) return std::nullopt;
  auto link = LinkTemplate::parse(settings.send.link);
  if (const auto* refusal = std::get_if<Refusal>(&link)) {
    refuse_setting(settings, "send.link", {"the link " + refusal->reason},
                   "for example https://app.example/{action}?token={token}");
  }
  return std::get<LinkTemplate>(std::move(link));
}

std::vector<ExtraHeader> read_headers(const config::Settings& settings) {
  auto headers = parse_extra_headers(settings.send.headers);
  if (const auto* refusal = std::get_if<Refusal>(&headers)) {
    refuse_setting(settings, "send.headers", *refusal,
                   "write each as 'X-Name: value'; a value with a comma needs the configuration file");
  }
  return std::get<std::vector<ExtraHeader>>(std::move(headers));
}

Redirection read_redirection(const config::Settings& settings) {
  Redirection redirection;
  if (const auto& text = settings.send.redirect_to; !text.empty()) {
    auto to = parse_address(text);
    if (const auto* refusal = std::get_if<Refusal>(&to))
      refuse_setting(settings, "send.redirect_to", *refusal, "write an address, such as dev@app.example");
    redirection.redirect_to(std::get<Address>(std::move(to)));
  }
  for (const auto& entry : settings.send.allow) {
    if (auto refusal = redirection.allow(entry))
      refuse_setting(settings, "send.allow", {fmt::format("'{}': {}", shown_text(entry), refusal->reason)},
                     "write addresses, and @app.example for all addresses of a domain");
  }
  return redirection;
}

void check_bounce_address(const config::Settings& settings) {
  const auto& pattern = settings.send.bounce_address;
  if (pattern.empty()) return;
  if (auto refusal = BounceAddress::problem_of(pattern))
    refuse_setting(settings, "send.bounce_address", *refusal,
                   "write it as bounce+{id}@app.example: a server must take mails to all such addresses");
}

void check_unsubscribing(const config::Settings& settings) {
  if (const auto& link = settings.send.unsubscribe_link; !link.empty()) {
    if (auto refusal = SubscriptionLinks::problem_of(link))
      refuse_setting(
          settings, "send.unsubscribe_link", *refusal,
          "write it as https://app.example/u/{token}, and let the web server pass that on to mailroom bounce --listen");
  }
  if (const auto& mailto = settings.send.unsubscribe_mailto; !mailto.empty()) {
    if (auto refusal = BounceAddress::problem_of(mailto))
      refuse_setting(
          settings, "send.unsubscribe_mailto", *refusal,
          "write it as unsubscribe+{id}@app.example: a server must take mails to all such addresses");
    if (mailto == settings.send.bounce_address)
      refuse_setting(settings, "send.unsubscribe_mailto", {"it is the address of bounces"},
                     "write another: any mail to it unsubscribes");
  }
}

constexpr std::size_t longest_name = 64;
/// Of what cannot be folded: a line has at most 998 octets (RFC 5322, section 2.1.1).
constexpr std::size_t longest_unfolded = 900;

constexpr auto message_id_name = "message-id";

/// In lower case: those of the message, those that add recipients, and those of transport.
constexpr std::array<std::string_view, 16> reserved{"date",
                                                    "from",
                                                    "sender",
                                                    "reply-to",
                                                    "to",
                                                    "cc",
                                                    "bcc",
                                                    "subject",
                                                    message_id_name,
                                                    "mime-version",
                                                    "auto-submitted",
                                                    "return-path",
                                                    "received",
                                                    "delivered-to",
                                                    "dkim-signature",
                                                    "x-mailroom-recipient"};

bool is_reserved(std::string_view name) {
  const auto key = lower_case(name);
  return std::find(reserved.begin(), reserved.end(), key) != reserved.end() || key.starts_with("content-") ||
         key.starts_with("resent-");
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_name && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

/// True if an encoded word has no place in its values: they are addresses, ids or URLs.
bool is_structured(std::string_view name) {
  const auto key = lower_case(name);
  return key == "references" || key == message_id_name || key.ends_with("-to") || key.starts_with("list-");
}

/// The size of the longest word with the blanks before it: a fold is before blanks, and not among them.
std::size_t longest_part_of(std::string_view value) {
  std::size_t longest = 0;
  while (!value.empty()) {
    const auto size =
        std::min(value.find(' ', std::min(value.find_first_not_of(' '), value.size())), value.size());
    longest = std::max(longest, size);
    value.remove_prefix(size);
  }
  return longest;
}

/// Empty if there is no problem. `may_name_mail`: it may be the Message-ID.
std::string problem_of(std::string_view name, std::string_view value, bool may_name_mail) {
  if (!is_name(name))
    return fmt::format("has a name that is not 1 to {} letters, digits and hyphens", longest_name);
  if (is_reserved(name) && !(may_name_mail && lower_case(name) == message_id_name))
    return fmt::format("is {}, which cannot be added", name);
  if (value.empty()) return fmt::format("has no value for {}", name);
  if (!is_printable(value)) return fmt::format("has a value for {} that is not printable", name);
  if (!is_ascii(value) && is_structured(name))
    return fmt::format("has a value for {} that is not printable ASCII", name);
  if (is_ascii(value) && longest_part_of(value) > longest_unfolded)
    return fmt::format("has more than {} characters in a row for {} that cannot be folded", longest_unfolded,
                       name);
  return {};
}

/// Appends a header to `headers`, or returns why it cannot be added.
std::string add_header(std::vector<ExtraHeader>& headers, std::string_view name, std::string_view value,
                       bool may_name_mail = false) {
  if (auto problem = problem_of(name, value, may_name_mail); !problem.empty()) return problem;
  const bool is_repeated = std::any_of(headers.begin(), headers.end(), [&](const auto& earlier) {
    return lower_case(earlier.name) == lower_case(name);
  });
  if (is_repeated) return fmt::format("is {}, which is given twice", name);
  headers.push_back({.name = std::string(name), .value = std::string(value)});
  return {};
}

}  // namespace

ConfiguredMail parse_configured_mail(const config::Settings& settings) {
  check_bounce_address(settings);
  check_unsubscribing(settings);
  return {.from = read_sender(settings),
          .reply_to = read_reply_to(settings),
          .link = read_link(settings),
          .headers = read_headers(settings),
          .redirection = read_redirection(settings)};
}

std::variant<std::vector<ExtraHeader>, Refusal> parse_extra_headers(const std::vector<std::string>& items) {
  std::vector<ExtraHeader> headers;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string_view item = items[i];
    const auto colon = item.find(':');
    const auto problem = colon == std::string_view::npos ? std::string("has no colon after a name")
                                                         : add_header(headers, trimmed(item.substr(0, colon)),
                                                                      trimmed(item.substr(colon + 1)));
    if (!problem.empty()) return Refusal{fmt::format("item {} {}", i + 1, problem)};
  }
  return headers;
}

std::variant<std::vector<ExtraHeader>, Refusal> parse_message_headers(std::string_view json) {
  constexpr std::size_t most = 100;
  std::vector<ExtraHeader> headers;
  if (json.empty()) return headers;
  const auto object = try_parse_ordered_json(json);
  if (!object.is_object()) return Refusal{"the headers are not a JSON object"};
  if (object.size() > most)
    return Refusal{fmt::format("the message has {} headers, at most {} are allowed", object.size(), most)};
  std::size_t number = 0;
  for (const auto& [name, value] : object.items()) {
    ++number;
    const auto problem = value.is_string()
                             ? add_header(headers, name, trimmed(value.get_ref<const std::string&>()), true)
                             : std::string("has a value that is not a text");
    if (!problem.empty()) return Refusal{fmt::format("header {} {}", number, problem)};
  }
  return headers;
}

std::string take_message_id(std::vector<ExtraHeader>& headers) {
  const auto found = std::ranges::find_if(
      headers, [](const auto& header) { return lower_case(header.name) == message_id_name; });
  if (found == headers.end()) return {};
  auto id = std::move(found->value);
  headers.erase(found);
  return id;
}

}  // namespace mailroom::mail
