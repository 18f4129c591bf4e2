// Texts that wait for the receiver of a consumer: the first few MiB in memory, the rest in a temporary
// file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.hpp"

namespace mailroom {

/// A file without a name in the directory for temporary files (TMPDIR, or /tmp). It ends with this, and with
/// the process.
class TemporaryFile {
 public:
  /// Throws Error(failed) with the reason.
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// Appends, and returns the place. Throws Error(failed), as when the disk is full; nothing is appended
  /// then. For one thread.
  std::size_t append(std::string_view bytes);
  /// For any thread. Throws Error(failed).
  std::string read(std::size_t place, std::size_t size) const;

 private:
  int fd_;
  std::size_t end_ = 0;
};

/// A text of a Spool, which need not outlive it.
class SpooledText {
 public:
  explicit SpooledText(std::string text) : text_(std::move(text)) {}
  SpooledText(std::shared_ptr<const TemporaryFile> file, std::size_t place, std::size_t size)
      : file_(std::move(file)), place_(place), size_(size) {}

  /// The text: its own if it is in memory, otherwise `memory`, into which it is read. Throws Error(failed).
  std::string_view read(std::string& memory) const;

 private:
  std::string text_{};
  std::shared_ptr<const TemporaryFile> file_{};
  std::size_t place_ = 0;
  std::size_t size_ = 0;
};

/// Keeps the texts of one batch after the other. Where there can be no file, all of them stay in memory, and
/// the log says so once.
class Spool {
 public:
  /// `log` may be null; otherwise it must outlive this.
  explicit Spool(Log* log) : log_(log) {}

  /// The texts that follow are of another batch.
  void begin_batch();
  SpooledText keep(std::string text);

  /// How many bytes of a batch stay in memory.
  static constexpr std::size_t memory_size = std::size_t{4} * 1024 * 1024;

 private:
  Log* log_;
  std::size_t in_memory_ = 0;
  std::shared_ptr<TemporaryFile> file_{};
  bool has_failed_ = false;  ///< in this batch
  bool has_warned_ = false;
};

}  // namespace mailroom
