// Formats lines with spdlog as text, logfmt or JSON, and hides whatever may be a secret.

#include "base/log.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <ostream>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"

#ifdef MAILROOM_SYSTEMD
#define SD_JOURNAL_SUPPRESS_LOCATION
#endif

namespace mailroom {
namespace {

/// %N: the level as the configuration spells it; spdlog's own %l prints `warning`.
class LevelName final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& line) override {
    constexpr std::array<std::string_view, 4> names{"debug", "info", "warn", "error"};
    line.append(fmt::format(
        "{:<{}}", names.at(static_cast<std::size_t>(message.level - spdlog::level::debug)), padinfo_.width_));
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<LevelName>(*this);
  }
};

/// One for each LogFormat.
constexpr std::array<const char*, 3> patterns{"%Y-%m-%dT%H:%M:%S.%eZ %^%-5N%$ %v",
                                              "time=%Y-%m-%dT%H:%M:%S.%eZ level=%N %v",
                                              R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%N",%v})"};

std::string quoted_text(std::string_view text) {
  return json_text(nlohmann::json(text));
}

std::string logfmt_text(std::string_view text) {
  const bool plain =
      !text.empty() && text.find_first_of(" \"=\\") == std::string_view::npos && printable(text) == text;
  return plain ? std::string(text) : quoted_text(text);
}

std::string render(LogFormat format, std::string_view message, std::span<const Field> fields) {
  const bool json = format == LogFormat::json;
  std::string line = json                          ? "\"message\":" + quoted_text(message)
                     : format == LogFormat::logfmt ? "msg=" + logfmt_text(message)
                                                   : printable(message);
  for (const auto& field : fields) {
    line += json ? fmt::format(",{}:{}", quoted_text(field.key),
                               field.is_number ? field.value : quoted_text(field.value))
                 : fmt::format(" {}={}", field.key, logfmt_text(field.value));
  }
  return line;
}

std::shared_ptr<spdlog::logger> make_logger(const Log::Options& options, spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("mailroom", std::move(sink));
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<LevelName>('N').set_pattern(patterns.at(static_cast<std::size_t>(options.format)));
  logger->set_formatter(std::move(formatter));
  logger->set_level(static_cast<spdlog::level::level_enum>(options.level));
  logger->flush_on(spdlog::level::debug);
  return logger;
}

spdlog::sink_ptr stderr_sink(bool colour) {
  return std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(colour ? spdlog::color_mode::always
                                                                          : spdlog::color_mode::never);
}

/// As syslog(3) numbers them.
int priority_of(LogLevel level) {
  constexpr std::array priorities{7, 6, 4, 3};
  return priorities.at(static_cast<std::size_t>(level) - static_cast<std::size_t>(LogLevel::debug));
}

std::string field_name(std::string_view key) {
  std::string name = "MAILROOM_";
  for (const char c : key) {
    const bool is_lower = c >= 'a' && c <= 'z';
    const bool is_digit = c >= '0' && c <= '9';
    name += is_lower ? static_cast<char>(c - 'a' + 'A') : is_digit ? c : '_';
  }
  return name;
}

}  // namespace

Log::Log(const Options& options)
    : format_(options.format),
      journal_(options.journal && options.format == LogFormat::text),
      queue_(options.queue),
      logger_(make_logger(options, stderr_sink(options.colour))) {}

Log::Log(const Options& options, std::ostream& stream)
    : format_(options.format),
      logger_(make_logger(options, std::make_shared<spdlog::sinks::ostream_sink_mt>(stream))) {}

void Log::write(LogLevel level, std::string_view message, std::span<const Field> fields) {
  const auto at = static_cast<spdlog::level::level_enum>(level);
  if (!logger_->should_log(at)) return;
  if (journal_ && write_to_journal(level, message, fields)) return;
  logger_->log(at, spdlog::string_view_t(without_secrets(render(format_, message, fields))));
}

bool Log::write_to_journal(LogLevel level, std::string_view message, std::span<const Field> fields) const {
  JournalEntry entry(level, render(format_, message, fields));
  bool has_queue = queue_.empty();
  for (const auto& field : fields) {
    entry.add(field.key, field.value);
    has_queue = has_queue || field.key == "queue";
  }
  if (!has_queue) entry.add("queue", queue_);
  return entry.send();
}

#ifdef MAILROOM_SYSTEMD
const bool has_journal = true;
#else
const bool has_journal = false;
#endif

bool is_journal(int fd) {
  // systemd sets it to device and inode of the stream, which a shell may have redirected since.
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat file {};
  return stream != nullptr && fstat(fd, &file) == 0 &&
         fmt::format("{}:{}", file.st_dev, file.st_ino) == stream;
}

bool stderr_is_journal() {
  return has_journal && is_journal(2);
}

JournalEntry::JournalEntry(LogLevel level, std::string_view message)
    : fields_{fmt::format("PRIORITY={}", priority_of(level)),
              "MESSAGE=" + without_secrets(std::string(message))} {}

void JournalEntry::add(std::string_view key, std::string_view value) {
  fields_.push_back(field_name(key) + "=" + without_secrets(std::string(value)));
}

bool JournalEntry::send() const {
#ifdef MAILROOM_SYSTEMD
  std::vector<iovec> parts;
  for (const auto& field : fields_)
    parts.push_back({.iov_base = const_cast<char*>(field.data()), .iov_len = field.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) >= 0;
#else
  return false;
#endif
}

}  // namespace mailroom
