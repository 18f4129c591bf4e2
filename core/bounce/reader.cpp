// What a mail is decides who reads it: a report of RFC 3464 or RFC 5965, or signs in its headers.

#include <algorithm>

#include "base/text.hpp"
#include "bounce/auto_reply.hpp"
#include "bounce/bounce.hpp"
#include "bounce/delivery_status.hpp"
#include "bounce/feedback_report.hpp"
#include "bounce/mail_parts.hpp"

namespace mailroom {
namespace {

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
    if (bounce.recipients.empty()) read_named_recipients(mail, bounce);
    if (bounce.recipients.empty() && bounce.is_standard) read_original_recipient(mail, bounce);
    fill_in_address(mail, bounce);
  } else if (is_auto_reply(mail)) {
    read_auto_reply(mail, bounce);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<Bounce> read_bounce(std::string_view bytes) {
  auto mail = read_mail_parts(bytes);
  Bounce bounce;
  bounce.to = recipients_of(mail.headers);
  // Gateways wrap notifications; what a person forwards is no bounce.
  if (mail.deliveries.empty() && !mail.wrapped.empty() && is_bounce_by_headers(mail)) {
    auto inner = std::move(mail.wrapped.front());
    mail = std::move(inner);
  }
  if (!read_report(mail, bounce)) return std::nullopt;
  bounce.message_id = first_id(mail.original.first("message-id"));
  if (bounce.message_id.empty()) bounce.message_id = first_id(mail.headers.first("in-reply-to"));
  return bounce;
}

}  // namespace mailroom
