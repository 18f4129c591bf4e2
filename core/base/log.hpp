// The log of every command, on stderr or, with a field for each value of a line, in systemd's journal.
#pragma once

#include <fmt/format.h>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace spdlog {
class logger;
}

namespace mailroom {

/// The values are those of spdlog.
enum class LogLevel { debug = 1, info, warn, error };
enum class LogFormat { text, logfmt, json };

/// One `key=value` of a log line. Must not hold a secret, a token or a code.
struct Field {
  template <typename T>
  Field(std::string_view field_key, const T& field_value)
      : key(field_key),
        value(fmt::to_string(field_value)),
        is_number(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {}

  std::string_view key;
  std::string value;
  bool is_number;
};

using Fields = std::initializer_list<Field>;

/// Structured lines: a message, then fields. Times are UTC with milliseconds.
class Log {
 public:
  struct Options {
    LogLevel level = LogLevel::info;
    LogFormat format = LogFormat::text;
    bool colour = false;
    /// Writes to systemd's journal, with each field as a field of the journal; only with LogFormat::text.
    bool journal = false;
    std::string queue{};  ///< the field MAILROOM_QUEUE of each entry of the journal that has none
  };

  /// Writes to stderr.
  explicit Log(const Options& options);
  /// Writes to `stream`, which must outlive the log; never uses colour.
  Log(const Options& options, std::ostream& stream);

  void debug(std::string_view message, Fields fields = {}) { write(LogLevel::debug, message, fields); }
  void info(std::string_view message, Fields fields = {}) { write(LogLevel::info, message, fields); }
  void warn(std::string_view message, Fields fields = {}) { write(LogLevel::warn, message, fields); }
  void error(std::string_view message, Fields fields = {}) { write(LogLevel::error, message, fields); }
  void write(LogLevel level, std::string_view message, Fields fields) {
    write(level, message, std::span<const Field>(fields.begin(), fields.size()));
  }
  void write(LogLevel level, std::string_view message, std::span<const Field> fields);

 private:
  /// Returns false if the journal does not take it.
  bool write_to_journal(LogLevel level, std::string_view message, std::span<const Field> fields) const;

  LogFormat format_;
  bool journal_ = false;
  std::string queue_;
  std::shared_ptr<spdlog::logger> logger_;
};

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
