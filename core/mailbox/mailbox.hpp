// A mailbox on another host, as what reads bounces sees it: it lists mails, fetches them without changing
// anything, and files each afterwards, when what it says is on record.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "config/settings.hpp"

namespace mailroom::mailbox {

/// What becomes of a mail.
enum class Filing {
  done,  ///< it is on record, with the mail that it is about
  look,  ///< it is on record, and somebody has to look at it
  other  ///< nothing of it is on record: it is no report
};

struct FiledMail {
  std::string name{};
  Filing filing = Filing::done;
};

/// Where IMAP files mails. POP3 knows no folders and no marks: it removes what is on record, and leaves the
/// rest.
struct FilingRules {
  std::string done_folder{};   ///< empty: they stay, and are marked as seen
  std::string other_folder{};  ///< for `look` and `other`; empty: they stay, marked as seen and flagged
  bool removes = false;        ///< `done` is removed
};

/// Throws Error from every function: configuration if the login or the certificate is refused, database if
/// the server cannot be reached or the connection was cut, failed for what else it says. The next list()
/// connects again.
class Mailbox {
 public:
  /// Octets of a mail that are kept; what is behind them is not read.
  static constexpr std::size_t longest_mail = std::size_t{1} << 20;
  using Visit = std::function<void(const std::string& name, std::string bytes)>;

  virtual ~Mailbox() = default;
  /// Some of the mails that nobody has filed, oldest first; none: there are no more now. Names are valid
  /// until the next list().
  virtual std::vector<std::string> list() = 0;
  /// Calls `visit` with the begin of each mail that is still there.
  virtual void fetch(std::span<const std::string> names, const Visit& visit) = 0;
  virtual void file(const std::vector<FiledMail>& mails) = 0;
  /// The listed mails are filed: what was removed is gone when this returns.
  virtual void finish() {}
  /// How long to wait before the next list() when there was nothing.
  virtual std::chrono::seconds pause() const = 0;
};

/// True while a stop is requested: then what waits for the server gives up.
using IsStopped = std::function<bool()>;

/// `url`: imaps://user@host/FOLDER, or imap:// with STARTTLS. Password or token, and the trusted
/// certificates, are those of `settings`. Throws Error(configuration).
std::unique_ptr<Mailbox> open_imap(std::string_view url, const FilingRules& rules,
                                   const config::Settings& settings, IsStopped is_stopped);
/// The same for pop3s://user@host, or pop3:// with STLS.
std::unique_ptr<Mailbox> open_pop3(std::string_view url, const config::Settings& settings,
                                   IsStopped is_stopped);

}  // namespace mailroom::mailbox
