// The arguments of sendmail(1), as programs give them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mailroom::sendmail {

enum class Mode {
  mail,     ///< a mail on standard input
  smtp,     ///< -bs: SMTP on standard input
  queue,    ///< -bp, mailq: what waits
  nothing,  ///< -bi, newaliases, -q: nothing is to be done
};

struct Arguments {
  Mode mode = Mode::mail;
  bool reads_recipients = false;        ///< -t
  bool ends_at_dot = true;              ///< without -i
  std::optional<std::string> sender{};  ///< -f, -r; empty: the null sender
  std::string name{};                   ///< -F
  std::vector<std::string> recipients{};
};

/// Takes every option of Postfix's sendmail; those that have no meaning here have no
/// effect. Throws Error(usage) for one that is unknown, or needs a value, and for a mode of a daemon.
Arguments parse_arguments(const std::vector<std::string>& given);

}  // namespace mailroom::sendmail
