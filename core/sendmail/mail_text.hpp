// The mail that comes on standard input, made ready for SMTP.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "sendmail/arguments.hpp"

namespace mailroom::sendmail {

/// A mail with its envelope. Line ends are CRLF.
struct Mail {
  std::string sender{};  ///< empty: the null sender
  std::vector<std::string> recipients{};
  std::string text{};

  bool operator==(const Mail&) const = default;
};

/// Who calls.
struct Caller {
  std::string user{};
  std::string name{};  ///< in full; may be empty
  std::string host{};
  Moment now{};
  std::string random{};  ///< letters and digits, new for each mail
};

/// `input` with CRLF for each line end, without a line `From ` in front, and, if `ends_at_dot`, up to a line
/// of one dot.
std::string with_line_ends(std::string_view input, bool ends_at_dot);

/// The mail that `arguments` and `input` describe. What its header lacks is put in front: From, Date, and
/// Message-ID, by which the service knows a mail that comes again. Throws Error(usage) if nobody gets it.
Mail make_mail(const Arguments& arguments, std::string_view input, const Caller& caller);

}  // namespace mailroom::sendmail
