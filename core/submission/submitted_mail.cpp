// The order of fields is kept: a signature covers it.

#include "submission/submitted_mail.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/encoded_text.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "crypto/digest.hpp"
#include "mail/message.hpp"
#include "mail/raw_mail.hpp"
#include "submission/header_fields.hpp"
#include "submission/mail_time.hpp"

namespace mailroom::submission {
namespace {

constexpr std::size_t longest_value = 1024;
constexpr int most_hops = 50;

bool is_option(std::string_view name) {
  return (name.starts_with("x-mailroom-") && name != "x-mailroom-recipient") ||
         name == "resend-idempotency-key";
}

Reply wrong_option(const HeaderField& field, std::string_view why) {
  return {554, "5.6.0", fmt::format("the header {} {}", field.name, why)};
}

/// Sets what an option says. Returns why that cannot be.
std::optional<Reply> take_option(SubmittedMail& mail, const HeaderField& field) {
  if (field.value.empty() || field.value.size() > longest_value || !is_printable(field.value))
    return wrong_option(field, "is empty, too long, or no text");
  const std::string value(field.value);
  const auto name = std::string_view(field.name);
  if (name == "x-mailroom-key" || name == "resend-idempotency-key") {
    mail.key = value;
  } else if (name == "x-mailroom-reference") {
    mail.reference = value;
  } else if (name == "x-mailroom-profile") {
    mail.profile = value;
  } else if (name == "x-mailroom-topic") {
    mail.topic = value;
  } else if (name == "x-mailroom-action") {
    mail.action = value;
  } else if (name == "x-mailroom-send-after" || name == "x-mailroom-expires-at") {
    const auto moment = parse_mail_time(value);
    if (!moment) return wrong_option(field, "is not a time such as 2026-11-28T12:00:00Z");
    (name == "x-mailroom-send-after" ? mail.send_after : mail.expires_at) = *moment;
  } else {
    return wrong_option(field, "is none that mailroom knows");
  }
  return std::nullopt;
}

std::string digest_of(const MailCircumstances& about, std::string_view mail) {
  using namespace std::string_view_literals;
  constexpr std::size_t kept = 18;
  const auto digest =
      crypto::sha256({about.role, "\0"sv, about.return_path, "\0"sv, about.recipients, "\0"sv, mail});
  return hex_text(std::span(digest).first(kept));
}

std::string domain_of_sender(const MailCircumstances& about) {
  const auto at = about.return_path.rfind('@');
  return at == std::string::npos ? about.host : about.return_path.substr(at + 1);
}

/// RFC 5321, section 4.4.
std::string received_field(const MailCircumstances& about) {
  const auto* const literal = about.peer.find(':') != std::string::npos   ? "[IPv6:{}]"
                              : about.peer.find('.') != std::string::npos ? "[{}]"
                                                                          : "{}";
  return fmt::format("Received: from {} ({})\r\n\tby {} (mailroom) with {};\r\n\t{}\r\n", about.hello,
                     fmt::format(fmt::runtime(literal), about.peer), about.host, about.with,
                     mail::date_header_text(about.now));
}

/// `root (Cron Daemon)` with the address of the settings: no relay takes the field without a domain.
std::string replaced_from(const HeaderField& field, const std::string& address) {
  const auto open = field.value.find('(');
  const auto close = field.value.rfind(')');
  auto name = open != std::string_view::npos && close != std::string_view::npos && close > open
                  ? trimmed(field.value.substr(open + 1, close - open - 1))
                  : trimmed(field.value.substr(0, field.value.find('<')));
  std::string quoted;
  for (const char c : name)
    if (c != '"' && c != '\\' && c != '\r' && c != '\n') quoted += c;
  return quoted.empty() ? fmt::format("From: {}\r\n", address)
                        : fmt::format("From: \"{}\" <{}>\r\n", quoted, address);
}

/// What the header has, as far as it matters here.
struct HeaderFacts {
  std::string kept{};  ///< without the options and Bcc
  std::string_view date{};
  bool has_id = false;
  bool has_from = false;
  std::vector<std::string_view> authors{};  ///< values of From
  int hops = 0;
};

/// The address of a field that has one; empty for a list, and for whatever could be read in two ways.
std::string sole_address(std::string_view value) {
  std::string bare;  // without quoted strings and comments
  int comments = 0;
  bool is_quoted = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '\\' && (is_quoted || comments > 0)) {
      ++i;
    } else if (c == '"' && comments == 0) {
      is_quoted = !is_quoted;
    } else if (!is_quoted && (c == '(' || c == ')')) {
      comments += c == '(' ? 1 : -1;
    } else if (!is_quoted && comments == 0 && c != '\r' && c != '\n') {
      bare += c;
    }
  }
  if (is_quoted || comments != 0 || bare.find_first_of(",;:") != std::string::npos) return {};
  const auto open = bare.find('<');
  const auto close = bare.find('>');
  if (open == std::string::npos && close == std::string::npos) return std::string(trimmed(bare));
  if (close == std::string::npos || close < open || open != bare.rfind('<') ||
      !trimmed(bare.substr(close + 1)).empty())
    return {};
  return std::string(trimmed(bare.substr(open + 1, close - open - 1)));
}

/// A role that may mail from some addresses alone has one of them in its one From.
bool is_author_allowed(const HeaderFacts& facts, const std::vector<std::string>& senders) {
  if (senders.empty() || !facts.has_from) return true;
  const auto author = facts.authors.size() == 1 ? sole_address(facts.authors.front()) : std::string();
  return !author.empty() && is_sender_allowed(author, senders);
}

std::optional<Reply> read_fields(const SplitMail& split, const MailCircumstances& about, SubmittedMail& mail,
                                 HeaderFacts& facts) {
  for (const auto& field : split.fields) {
    if (field.name == "date") facts.date = field.value;
    facts.has_id = facts.has_id || field.name == "message-id";
    if (field.name == "received") ++facts.hops;
    if (is_option(field.name)) {
      if (!about.takes_options) continue;
      if (auto problem = take_option(mail, field)) return problem;
    } else if (field.name == "from") {
      const bool is_local = about.may_replace_local_from && field.value.find('@') == std::string_view::npos;
      facts.kept += is_local ? replaced_from(field, about.local_from) : std::string(field.whole);
      facts.has_from = true;
      facts.authors.push_back(is_local ? std::string_view(about.local_from) : field.value);
    } else if (field.name != "bcc") {
      facts.kept += field.whole;
    }
  }
  if (facts.hops > most_hops) return replies::loops;
  if (!facts.has_from && about.return_path.empty()) return replies::no_from;
  return std::nullopt;
}

}  // namespace

std::variant<SubmittedMail, Reply> submitted_mail(std::string_view bytes, const MailCircumstances& about) {
  SubmittedMail mail{.return_path = about.return_path,
                     .recipients = about.recipients,
                     .send_after = about.held_until,
                     .keeps_return_path = about.keeps_return_path};
  const auto split = split_mail(bytes);
  HeaderFacts facts;
  if (auto problem = read_fields(split, about, mail, facts)) return *problem;
  if (mail.key.empty()) {
    // Begins with the time of the mail, so that entries of the index lie together.
    const auto dated = parse_mail_time(facts.date).value_or(about.now);
    mail.key = fmt::format("smtp:{:08x}:{}", std::max<std::int64_t>(in_seconds(dated), 0) & 0xffffffff,
                           facts.has_id ? digest_of(about, bytes) : about.random);
  }
  if (!is_author_allowed(facts, about.senders)) return replies::foreign_author;
  mail.subject = mail::subject_of_raw_mail(bytes);
  if (mail.subject.size() > 8 * longest_value || !is_printable(mail.subject)) mail.subject.clear();
  auto& raw = mail.raw;
  raw.reserve(bytes.size() + longest_value);
  raw = received_field(about);
  if (facts.date.empty()) raw += fmt::format("Date: {}\r\n", mail::date_header_text(about.now));
  if (!facts.has_id) raw += fmt::format("Message-ID: <{}@{}>\r\n", about.random, domain_of_sender(about));
  if (!facts.has_from) raw += fmt::format("From: <{}>\r\n", about.return_path);
  raw += facts.kept;
  if (!split.rest.starts_with("\r\n")) raw += "\r\n";
  raw += split.rest;
  if (!raw.ends_with("\r\n")) raw += "\r\n";
  return mail;
}

bool is_sender_allowed(std::string_view address, const std::vector<std::string>& senders) {
  if (senders.empty() || address.empty()) return true;
  const auto lower = lower_case(address);
  return std::ranges::any_of(senders, [&](const std::string& allowed) {
    return allowed.starts_with('@') ? lower.ends_with(allowed) : lower == allowed;
  });
}

std::string with_protocol(bool is_extended, bool is_secure, bool is_logged_in, bool is_utf8) {
  // RFC 6531, section 4.3.
  std::string protocol = is_utf8 ? "UTF8SMTP" : is_extended ? "ESMTP" : "SMTP";
  if (is_extended && is_secure) protocol += 'S';
  if (is_extended && is_logged_in) protocol += 'A';
  return protocol;
}

}  // namespace mailroom::submission
