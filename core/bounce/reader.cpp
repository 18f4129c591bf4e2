// What a mail is decides who reads it: a report of RFC 3464 or RFC 5965, or signs in its headers.

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"
#include "bounce/bounce.hpp"
#include "bounce/delivery_status.hpp"
#include "bounce/mail_parts.hpp"

namespace mailroom::bounce {
namespace {

// Signs of headers only: the words of a body may be quoted.

constexpr std::array<std::string_view, 30> failure_subjects{"undeliver",
                                                            "returned mail",
                                                            "returned to sender",
                                                            "returning message",
                                                            "failure notice",
                                                            "mail delivery",
                                                            "delivery status",
                                                            "delivery fail",
                                                            "delivery has",
                                                            "delivery notification",
                                                            "delivery report",
                                                            "delivery error",
                                                            "delayed mail",
                                                            "mail system error",
                                                            "message could not",
                                                            "could not send message",
                                                            "warning: message",
                                                            "non-delivery",
                                                            "message not deliver",
                                                            "could not be delivered",
                                                            "was not delivered",
                                                            "mail failure",
                                                            "non remis",
                                                            "non remise",
                                                            "unzustellbar",
                                                            "nicht zustellbar",
                                                            "no se puede entregar",
                                                            "non recapitabile",
                                                            "не доставлено",
                                                            "rejected:"};

constexpr std::array<std::string_view, 22> reply_subjects{"auto:",
                                                          "autoreply",
                                                          "auto reply",
                                                          "auto-reply",
                                                          "auto response",
                                                          "autoresponse",
                                                          "auto-response",
                                                          "automatic reply",
                                                          "automatic response",
                                                          "automated reply",
                                                          "out of office",
                                                          "out of the office",
                                                          "vacation",
                                                          "away from my mail",
                                                          "abwesenheit",
                                                          "automatische antwort",
                                                          "réponse automatique",
                                                          "absence du bureau",
                                                          "respuesta automática",
                                                          "risposta automatica",
                                                          "автоответ",
                                                          "自動返信"};

template <std::size_t size>
bool holds_any(const std::string& text, const std::array<std::string_view, size>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

template <std::size_t size>
bool begins_with_any(const std::string& text, const std::array<std::string_view, size>& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return text.starts_with(start); });
}

/// No person begins a subject so, and a reply to one begins with `Re:`.
constexpr std::array<std::string_view, 11> clear_subjects{"mail delivery failed",
                                                          "delivery failure",
                                                          "permanent delivery failure",
                                                          "delivery status notification",
                                                          "mail could not be delivered",
                                                          "returned mail:",
                                                          "returned mail -",
                                                          "undeliverable:",
                                                          "undeliverable mail",
                                                          "undelivered mail",
                                                          "failure notice"};

/// `mailer-daemon` of any form, `postmaster`, and an empty envelope sender.
bool is_daemon(const std::string& from) {
  return from.find("mailer-daemon") != std::string::npos || from.find("mailer daemon") != std::string::npos ||
         from.find("mail delivery sub") != std::string::npos ||
         from.find("mail delivery sys") != std::string::npos;
}

/// True for a notification of failure, whatever its form: its sender and its subject say so.
bool is_bounce_by_headers(const MailParts& mail) {
  const auto& headers = mail.headers;
  if (headers.has("x-failed-recipients")) return true;
  if (mail.report_type == "delivery-status") return true;
  const auto from = lower_case(headers.first("from"));
  if (is_daemon(from)) return true;
  // An answer repeats a subject of ours, which may be any.
  if (headers.has("in-reply-to") && mail.original.is_empty()) return false;
  const auto subject = lower_case(headers.first("subject"));
  if (begins_with_any(subject, clear_subjects)) return true;
  const auto path = lower_case(headers.first("return-path"));
  const bool is_null_path = headers.has("return-path") && (path.empty() || path == "<>");
  const bool is_postmaster = from.find("postmaster") != std::string::npos ||
                             from.find("post_master") != std::string::npos ||
                             path.find("mailer-daemon") != std::string::npos;
  if (is_postmaster && is_null_path) return true;
  return (is_postmaster || is_null_path) && holds_any(subject, failure_subjects);
}

/// True if a program answered a mail (RFC 3834), as one does for those who are on holiday.
bool is_auto_reply(const MailParts& mail) {
  const auto& headers = mail.headers;
  const auto submitted = lower_case(headers.first("auto-submitted"));
  if (submitted.starts_with("auto-replied")) return true;
  if (submitted == "no") return false;
  if (headers.has("x-autoreply") || headers.has("x-autorespond") || headers.has("x-autoresponder"))
    return true;
  const auto precedence = lower_case(headers.first("precedence"));
  if (precedence == "auto_reply" || precedence == "auto-reply") return true;
  if (lower_case(headers.first("x-apple-action")) == "vacation") return true;
  return begins_with_any(lower_case(headers.first("subject")), reply_subjects);
}

void add_recipient(std::string address, BounceKind kind, Bounce& bounce) {
  if (bounce.recipients.size() >= bounce_limits::max_recipients) return;
  BounceRecipient recipient;
  recipient.address = std::move(address);
  recipient.kind = kind;
  recipient.reason = BounceReason::feedback;
  bounce.recipients.push_back(std::move(recipient));
}

BounceKind kind_of(const HeaderFields& report) {
  const auto type = lower_case(report.first("feedback-type"));
  const bool is_complaint = type != "auth-failure" && type != "not-spam";
  return is_complaint ? BounceKind::complaint : BounceKind::undetermined;
}

/// Adds a recipient for each that the reports of `mail` name, or one without an address. Reports of failed
/// authentication (RFC 6591) and of mails that are no spam are no complaints: their kind is undetermined.
/// Reporters hide most of what the RFC offers; the mail that they send back has the rest.
void read_feedback(const MailParts& mail, Bounce& bounce) {
  HeaderFields report;
  for (const auto& part : mail.feedback) {
    for (const auto& block : read_field_blocks(part, 8)) {
      for (const auto& [name, value] : block.all())
        report.add(name, value);
    }
  }
  const auto kind = kind_of(report);
  for (const auto& [name, value] : report.all()) {
    if (name == "original-rcpt-to") add_recipient(report_address(value), kind, bounce);
  }
  if (bounce.recipients.empty()) add_recipient(original_recipient(mail), kind, bounce);
  if (bounce.envelope_id.empty()) bounce.envelope_id = decode_xtext(report.first("original-envelope-id"));
}

/// True for a complaint as Outlook.com sends it: the mail itself, with no report.
bool is_bare_complaint(const MailParts& mail) {
  return mail.has_original &&
         lower_case(mail.headers.first("subject")).starts_with("complaint about message from");
}

constexpr std::size_t max_candidates = 20;

/// The first id of a field as Message-ID or References, without <>.
std::string first_id(const std::string& value) {
  constexpr std::size_t longest = 998;
  const auto start = value.find('<');
  const auto end = value.find('>', start == std::string::npos ? 0 : start);
  if (start == std::string::npos || end == std::string::npos)
    return value.find(' ') == std::string::npos && value.size() <= longest ? value : std::string();
  return end - start <= longest ? value.substr(start + 1, end - start - 1) : std::string();
}

std::vector<std::string> recipients_of(const HeaderFields& headers) {
  std::vector<std::string> addresses;
  for (const auto* const wanted :
       {"delivered-to", "x-original-to", "envelope-to", "x-envelope-to", "x-delivered-to", "to"}) {
    for (const auto& [name, value] : headers.all())
      if (name == wanted) add_addresses(value, max_candidates, addresses);
  }
  return addresses;
}

/// Exim and Google name the recipients in a field, which knows the address that was sent to; the report may
/// have a pipe instead.
void fill_in_address(const MailParts& mail, Bounce& bounce) {
  if (bounce.recipients.size() != 1 || !bounce.recipients.front().address.empty()) return;
  std::vector<std::string> failed;
  add_addresses(mail.headers.first("x-failed-recipients"), 2, failed);
  if (failed.size() == 1) bounce.recipients.front().address = failed.front();
}

void read_auto_reply(const MailParts& mail, Bounce& bounce) {
  std::vector<std::string> from;
  add_addresses(mail.headers.first("from"), 1, from);
  BounceRecipient recipient;
  if (!from.empty()) recipient.address = from.front();
  recipient.kind = BounceKind::auto_reply;
  recipient.reason = BounceReason::vacation;
  bounce.recipients.push_back(std::move(recipient));
}

/// False if the mail is nothing that comes back.
bool read_report(const MailParts& mail, Bounce& bounce) {
  bounce.is_standard = !mail.deliveries.empty() || !mail.feedback.empty();
  if (!mail.feedback.empty() || is_bare_complaint(mail)) {
    read_feedback(mail, bounce);
  } else if (bounce.is_standard || is_bounce_by_headers(mail)) {
    read_delivery_status(mail, bounce);
    if (bounce.recipients.empty()) read_delivery_status_in_text(mail, bounce);
    if (bounce.recipients.empty()) read_failed_recipients(mail, bounce);
    if (bounce.recipients.empty()) read_recipients_in_text(mail, bounce);
    if (bounce.recipients.empty()) read_original_recipient(mail, bounce);
    fill_in_address(mail, bounce);
  } else if (is_auto_reply(mail)) {
    read_auto_reply(mail, bounce);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Bounce read_mail(std::string_view bytes) {
  auto mail = read_mail_parts(bytes);
  Bounce bounce;
  bounce.to = recipients_of(mail.headers);
  // Gateways wrap notifications; what a person forwards is no bounce.
  if (mail.deliveries.empty() && !mail.wrapped.empty() && is_bounce_by_headers(mail)) {
    auto inner = std::move(mail.wrapped.front());
    mail = std::move(inner);
  }
  bounce.is_report = read_report(mail, bounce);
  if (bounce.recipients.empty()) bounce.words = short_line(mail.headers.first("subject") + ": " + mail.text);
  add_addresses(mail.original.first("return-path"), max_candidates, bounce.returned_from);
  bounce.message_id = first_id(mail.original.first("message-id"));
  if (bounce.message_id.empty()) bounce.message_id = first_id(mail.headers.first("in-reply-to"));
  return bounce;
}

std::optional<Bounce> read_bounce(std::string_view bytes) {
  auto bounce = read_mail(bytes);
  return bounce.is_report ? std::optional(std::move(bounce)) : std::nullopt;
}

}  // namespace mailroom::bounce
