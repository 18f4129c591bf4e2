// The part message/feedback-report (RFC 5965): somebody called a mail spam.
#pragma once

#include "bounce/bounce.hpp"
#include "bounce/mail_parts.hpp"

namespace mailroom {

/// Adds a recipient for each that the reports of `mail` name, or one without an address. Reports of failed
/// authentication (RFC 6591) and of mails that are no spam are no complaints: their kind is undetermined.
void read_feedback(const MailParts& mail, Bounce& bounce);

/// True for a complaint as Outlook.com sends it: the mail itself, with no report.
bool is_bare_complaint(const MailParts& mail);

}  // namespace mailroom
