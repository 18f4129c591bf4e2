// Writes mails into a maildir, so that a crash leaves none that is incomplete.
#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// A maildir (https://cr.yp.to/proto/maildir.html) that is made if it is not there.
class MaildirWriter {
 public:
  /// Throws Error(configuration) if it cannot be made or be written into.
  explicit MaildirWriter(std::string directory);

  /// Writes `head` and `body` as a mail, and returns the name of its file in `new`; names sort by time.
  /// Throws Error(failed). The mail is on disk for good after flush().
  std::string write(std::string_view head, std::string_view body);
  void flush() const;

  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
  std::string host_;
};

}  // namespace mailroom
