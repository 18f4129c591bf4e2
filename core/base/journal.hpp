// Entries of systemd's journal with a field for each value of a log line, where the build has libsystemd.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"

namespace mailroom {

/// True if this build can write to systemd's journal.
extern const bool has_journal;

/// True if the descriptor is connected to systemd's journal.
bool is_journal(int fd);
/// True if stderr is, and has_journal.
bool stderr_is_journal();

/// One entry of systemd's journal: a message with its priority, and fields.
class JournalEntry {
 public:
  JournalEntry(LogLevel level, std::string_view message);

  /// Adds the field `MAILROOM_KEY`, for `key` in lower case.
  void add(std::string_view key, std::string_view value);
  /// The fields as journald takes them: `PRIORITY=6`.
  const std::vector<std::string>& fields() const { return fields_; }
  /// Returns false if the journal does not take it.
  bool send() const;

 private:
  std::vector<std::string> fields_;
};

}  // namespace mailroom
