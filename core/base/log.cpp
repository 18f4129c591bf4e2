#include "base/log.hpp"

#include <nlohmann/json.hpp>
#include <ostream>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::string_view name_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warn";
    default:
      return "error";
  }
}

/// %N: the level as the configuration spells it; spdlog's own %l prints `warning`.
class LevelName final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& line) override {
    const auto name = name_of(message.level);
    line.append(name.data(), name.data() + name.size());
    for (auto width = name.size(); width < padinfo_.width_; ++width)
      line.push_back(' ');
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<LevelName>(*this);
  }
};

const char* pattern(LogFormat format) {
  switch (format) {
    case LogFormat::text:
      return "%Y-%m-%dT%H:%M:%S.%eZ %^%-5N%$ %v";
    case LogFormat::logfmt:
      return "time=%Y-%m-%dT%H:%M:%S.%eZ level=%N %v";
    case LogFormat::json:
      return R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%N",%v})";
  }
  return "%v";
}

std::string quoted_text(std::string_view text) {
  return json_text(nlohmann::json(text));
}

std::string logfmt_text(std::string_view text) {
  const bool plain =
      !text.empty() && text.find_first_of(" \"=\\") == std::string_view::npos && printable(text) == text;
  return plain ? std::string(text) : quoted_text(text);
}

std::string render(LogFormat format, std::string_view message, Fields fields) {
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

std::unique_ptr<spdlog::logger> make_logger(const Log::Options& options, spdlog::sink_ptr sink) {
  auto logger = std::make_unique<spdlog::logger>("mailroom", std::move(sink));
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<LevelName>('N').set_pattern(pattern(options.format));
  logger->set_formatter(std::move(formatter));
  logger->set_level(to_spdlog(options.level));
  logger->flush_on(spdlog::level::debug);
  return logger;
}

spdlog::sink_ptr stderr_sink(bool colour) {
  return std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(colour ? spdlog::color_mode::always
                                                                          : spdlog::color_mode::never);
}

}  // namespace

Log::Log(const Options& options)
    : format_(options.format), logger_(make_logger(options, stderr_sink(options.colour))) {}

Log::Log(const Options& options, std::ostream& stream)
    : format_(options.format),
      logger_(make_logger(options, std::make_shared<spdlog::sinks::ostream_sink_mt>(stream))) {}

Log::~Log() = default;
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;

void Log::write(LogLevel level, std::string_view message, Fields fields) {
  const auto at = to_spdlog(level);
  if (!logger_->should_log(at)) return;
  logger_->log(at, spdlog::string_view_t(without_secrets(render(format_, message, fields))));
}

}  // namespace mailroom
