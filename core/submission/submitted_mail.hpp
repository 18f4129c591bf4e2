// Makes of what a client has sent what is stored: options are taken out of the header, and what is missing is
// put in front. All else stays as it came.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "submission/reply.hpp"

namespace mailroom::submission {

/// A mail as mailroom_submit() takes it.
struct SubmittedMail {
  std::string return_path{};
  std::string recipients{};  ///< with line feeds between them
  std::string raw{};
  std::string key{};
  std::string reference{};  ///< empty for none, and so are those below
  std::string profile{};
  std::string topic{};
  std::string action{};
  std::string subject{};
  std::optional<Moment> send_after{};
  std::optional<Moment> expires_at{};
  bool keeps_return_path = false;
};

/// What is known of a mail beside its bytes.
struct MailCircumstances {
  std::string role{};
  std::string return_path{};
  std::string recipients{};
  std::string peer{};   ///< address of the client
  std::string hello{};  ///< as it calls itself
  std::string host{};   ///< as we call ourselves
  std::string with{};   ///< `ESMTPSA` (RFC 3848)
  Moment now{};
  std::optional<Moment> held_until{};   ///< of MAIL (RFC 4865)
  bool takes_options = true;            ///< false for a role that forwards mails of others
  std::vector<std::string> senders{};   ///< as RoleTerms
  bool keeps_return_path = false;       ///< the same
  bool may_replace_local_from = false;  ///< From without a domain becomes `local_from`
  std::string local_from{};
  std::string random{};  ///< letters and digits, new for each mail
};

/// `mail`: header and body with CRLF line ends. Refuses an option that is not known or wrong, a mail without
/// From, and one that goes round in circles.
std::variant<SubmittedMail, Reply> submitted_mail(std::string_view mail, const MailCircumstances& about);

/// True if `senders`, addresses and @domains in lower case, has the address, or there are none.
bool is_sender_allowed(std::string_view address, const std::vector<std::string>& senders);

/// `ESMTPSA`: E for EHLO, S for TLS, A for a login.
std::string with_protocol(bool is_extended, bool is_secure, bool is_logged_in, bool is_utf8);

}  // namespace mailroom::submission
