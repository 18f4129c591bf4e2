// The parts of a mail that a bounce may have, read by GMime.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bounce/header_fields.hpp"

namespace mailroom {

struct MailParts {
  HeaderFields headers;
  std::string content_type;  ///< of the mail itself, as `multipart/report`
  std::string report_type;   ///< parameter of the content type (RFC 6522), in lower case; or empty
  std::string text;          ///< the first part for people, in UTF-8, and no more than its beginning
  std::vector<std::string> deliveries;  ///< message/delivery-status
  std::vector<std::string> feedback;    ///< message/feedback-report
  bool has_original = false;            ///< had the mail that it is about, or the headers of it
  HeaderFields original;                ///< the headers of that
  std::vector<MailParts> wrapped;       ///< a notification within this mail: at most one
};

/// Reads the parts outside of mails within the mail.
MailParts read_mail_parts(std::string_view bytes);

}  // namespace mailroom
