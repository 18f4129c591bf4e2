// Reporters hide most of what the RFC offers; the mail that they send back has the rest.

#include "bounce/feedback_report.hpp"

#include "base/text.hpp"
#include "bounce/delivery_status.hpp"
#include "reasons/status_code.hpp"

namespace mailroom {
namespace {

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

}  // namespace

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

bool is_bare_complaint(const MailParts& mail) {
  return mail.has_original &&
         lower_case(mail.headers.first("subject")).starts_with("complaint about message from");
}

}  // namespace mailroom
