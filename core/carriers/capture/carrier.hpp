// What takes mails in place of a relay, for development: it keeps them in a maildir, and nobody gets them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.hpp"
#include "carriers/carriers.hpp"

namespace mailroom::capture {

/// The name of this way out in records.
constexpr std::string_view capture_sink = "capture";

/// The relay that captures into this directory.
config::RelayTarget capture_relay(const std::string& directory);

/// True if some relay of the path captures.
bool captures(const config::RelayPath& path);

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

/// Writes each mail with the bytes that a relay would get, below lines with its envelope. Without a thread:
/// take() does the work.
class CaptureCarrier final : public delivery::Carrier {
 public:
  /// Throws as MaildirWriter().
  explicit CaptureCarrier(std::string directory);

  void submit(delivery::Message message) override;
  int fd() const override { return ready_.fd(); }
  std::vector<delivery::Answer> take() override;
  std::size_t unfinished() const override { return waiting_.size() + answers_.size(); }
  void cancel() override;
  std::vector<std::string> endpoints() const override { return {std::string(capture_sink)}; }

 private:
  delivery::Answer keep(const delivery::Message& message);

  MaildirWriter maildir_;
  EventFd ready_;
  std::vector<delivery::Message> waiting_;
  std::vector<delivery::Answer> answers_;
};

std::unique_ptr<delivery::Carrier> make_capture_carrier(const config::RelayPath& path);
std::vector<carriers::SinkFinding> check_capture(const config::RelayPath& path,
                                                 const mail::ConfiguredMail& mail);

/// The directory that a relay of this kind names. Throws Error(configuration) without one.
std::string capture_directory(const config::RelayTarget& relay);

}  // namespace mailroom::capture
