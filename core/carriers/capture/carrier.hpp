// What takes mails in place of a relay, for development: it keeps them in a maildir, and nobody gets them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.hpp"
#include "carriers/capture/maildir_writer.hpp"
#include "carriers/carriers.hpp"

namespace mailroom {

/// The name of this way out in records.
constexpr std::string_view capture_sink = "capture";

/// The relay of send.relay that captures into this directory.
std::string capture_relay(const std::string& directory);

/// True if some relay of the list captures.
bool captures(std::string_view relays);

/// Writes each mail with the bytes that a relay would get, below lines with its envelope. Without a thread:
/// take() does the work.
class CaptureCarrier final : public Carrier {
 public:
  /// Throws as MaildirWriter().
  explicit CaptureCarrier(std::string directory);

  void submit(Message message) override;
  int fd() const override { return ready_.fd(); }
  std::vector<Answer> take() override;
  std::size_t unfinished() const override { return waiting_.size() + answers_.size(); }
  void cancel() override;
  std::vector<std::string> endpoints() const override { return {std::string(capture_sink)}; }

 private:
  Answer keep(const Message& message);

  MaildirWriter maildir_;
  EventFd ready_;
  std::vector<Message> waiting_;
  std::vector<Answer> answers_;
};

std::unique_ptr<Carrier> make_capture_carrier(const CarrierSetup& setup);
std::vector<SinkFinding> check_capture(const Settings& settings);

/// The directory that a relay of this kind names. Throws Error(configuration) without one.
std::string capture_directory(std::string_view relay);

}  // namespace mailroom
