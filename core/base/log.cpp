#include "base/log.hpp"

#include <nlohmann/json.hpp>
#include <ostream>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/ostream_sink.h>

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

const char* pattern(LogFormat format) {
  switch (format) {
    case LogFormat::text:
      return "%Y-%m-%dT%H:%M:%S.%eZ %^%-7l%$ %v";
    case LogFormat::logfmt:
      return "time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v";
    case LogFormat::json:
      return R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";
  }
  return "%v";
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string logfmt_text(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_of(" \"=\\\n\r\t") == std::string_view::npos;
  return plain ? std::string(text) : json_text(text);
}

std::string render(LogFormat format, std::string_view message, Fields fields) {
  const bool json = format == LogFormat::json;
  std::string line = json                          ? "\"message\":" + json_text(message)
                     : format == LogFormat::logfmt ? "msg=" + logfmt_text(message)
                                                   : std::string(message);
  for (const auto& field : fields) {
    line += json ? fmt::format(",{}:{}", json_text(field.key),
                               field.is_number ? field.value : json_text(field.value))
                 : fmt::format(" {}={}", field.key, logfmt_text(field.value));
  }
  return line;
}

std::unique_ptr<spdlog::logger> make_logger(const Log::Options& options, spdlog::sink_ptr sink) {
  auto logger = std::make_unique<spdlog::logger>("mailroom", std::move(sink));
  logger->set_formatter(
      std::make_unique<spdlog::pattern_formatter>(pattern(options.format), spdlog::pattern_time_type::utc));
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
  logger_->log(at, spdlog::string_view_t(render(format_, message, fields)));
}

}  // namespace mailroom
