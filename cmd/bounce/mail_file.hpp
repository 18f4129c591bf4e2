// Mails that come as a file: one as it is, or several in the format mbox.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

namespace mailroom::cmd {

/// Reads one mail after the other, and of each as much as a report can have. A file that begins as
/// `From ada@mail.example Thu Apr 29 23:34:45 2026` has several if such a line stands between an empty one
/// and a header. It may also be the first line of a mail that is sent back: behind the header of a part.
class MailFile {
 public:
  /// Refers to `in`.
  explicit MailFile(std::istream& in) : in_(in) {}

  /// nullopt behind the last; an empty file is one mail.
  std::optional<std::string> next();

 private:
  bool read_line(std::string& line);

  std::istream& in_;
  std::string begin_;  ///< of the next mail, which has been read
  bool is_mbox_ = false;
  bool has_begun_ = false;
};

}  // namespace mailroom::cmd
