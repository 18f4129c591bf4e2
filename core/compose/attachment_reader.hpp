// Reads the files that go with a message, when its mail is written, in a session of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "db/connection.hpp"
#include "mail/message.hpp"
#include "process/stop_watcher.hpp"

namespace mailroom::compose {

/// The files of a message, in their order. Refuses more than `largest` bytes, which it does not read.
std::variant<std::vector<mail::Attachment>, mail::Refusal> read_attachments(db::Connection& connection,
                                                                            std::int64_t message,
                                                                            std::size_t largest);

/// Opens its session when it first reads. The session of the queue is busy while mails are written.
class AttachmentReader {
 public:
  using Connect = std::function<std::unique_ptr<db::Connection>()>;

  /// `watcher` may be null, or else outlives this.
  AttachmentReader(Connect connect, process::StopWatcher* watcher)
      : connect_(std::move(connect)), watcher_(watcher) {}

  /// As read_attachments(). Throws ConnectionLost and DatabaseError; then the next call opens another
  /// session.
  std::variant<std::vector<mail::Attachment>, mail::Refusal> read(std::int64_t message, std::size_t largest);
  /// Keeps nothing that it has read: until then, the copies of one message share one reading.
  void forget() { kept_.reset(); }

 private:
  struct Kept {
    std::int64_t message = 0;
    std::variant<std::vector<mail::Attachment>, mail::Refusal> files;
  };

  Connect connect_;
  process::StopWatcher* watcher_;
  std::unique_ptr<db::Connection> connection_;
  std::optional<Kept> kept_;
};

}  // namespace mailroom::compose
