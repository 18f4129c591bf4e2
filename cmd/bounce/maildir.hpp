// The mails in a maildir that nobody has read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mailroom::cmd {

/// A maildir (https://cr.yp.to/proto/maildir.html): a mail is a file in `new` until somebody has read it, and
/// in `cur` then, with letters after its name.
class Maildir {
 public:
  /// Throws Error(configuration) if the directory has no `new` and `cur` that can be read.
  explicit Maildir(std::filesystem::path directory);

  /// The name of the next mail in `new`, the oldest first; nullopt once behind the last of those that were
  /// there when `new` was listed: the call after that lists it again. Throws Error(failed).
  std::optional<std::string> next();
  /// The bytes of a mail in `new`, its begin if it is longer than a report can be; nullopt if somebody has
  /// moved it. Throws Error(failed).
  std::optional<std::string> read(const std::string& name) const;
  /// Moves a mail from `new` to `cur`: as seen, and marked if `is_marked`. Throws Error(failed).
  void move(const std::string& name, bool is_marked) const;

 private:
  void list();

  std::filesystem::path directory_;
  std::vector<std::string> listed_;  ///< that next() has not returned, the oldest last
  bool is_listed_ = false;
};

}  // namespace mailroom::cmd
