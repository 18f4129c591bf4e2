// The mails in a maildir that nobody has read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mailroom {

/// A maildir (https://cr.yp.to/proto/maildir.html): a mail is a file in `new` until somebody has read it, and
/// in `cur` then, with letters after its name.
class Maildir {
 public:
  /// Throws Error(configuration) if the directory has no `new` and `cur` that can be read.
  explicit Maildir(std::filesystem::path directory);

  /// The names of at most `most` mails in `new`, the oldest first. Throws Error(failed).
  std::vector<std::string> unread(std::size_t most) const;
  /// The bytes of a mail in `new`, its begin if it is longer than a report can be; nullopt if somebody has
  /// moved it. Throws Error(failed).
  std::optional<std::string> read(const std::string& name) const;
  /// Moves a mail from `new` to `cur`: as seen, and marked if `is_marked`. Throws Error(failed).
  void move(const std::string& name, bool is_marked) const;

 private:
  std::filesystem::path directory_;
};

/// The bytes of a file, `-` for standard input, its begin if it is longer than a report can be. Throws
/// Error(failed).
std::string read_report_file(const std::string& path);

}  // namespace mailroom
