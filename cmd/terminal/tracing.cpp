// Only a build with HTTP can send spans.

#include "cmd/terminal/tracing.hpp"

#include <random>

#include "base/error.hpp"
#ifdef MAILROOM_HTTP
#include "otlp/span_exporter.hpp"
#endif

namespace mailroom::cmd {

std::unique_ptr<Tracing> open_tracing(const config::Settings& settings, Log& log) {
  if (settings.trace.endpoint.empty()) return nullptr;
#ifdef MAILROOM_HTTP
  auto target = otlp::trace_target(settings);
  std::random_device random;
  const auto seed = (static_cast<std::uint64_t>(random()) << 32U) | random();
  auto tracing = std::make_unique<Tracing>(settings.trace.sample, seed);
  log.info("sending traces", {{"to", target.endpoint.name}});
  tracing->send_with(std::make_shared<otlp::SpanExporter>(std::move(target), tracing->buffer(), log));
  return tracing;
#else
  static_cast<void>(log);
  throw Error(ExitCode::configuration, "this mailroom is built without HTTP, by which traces are sent",
              "build it with -D MAILROOM_HTTP=ON, or remove trace.endpoint");
#endif
}

std::string try_tracing(const config::Settings& settings) {
#ifdef MAILROOM_HTTP
  return otlp::try_target(otlp::trace_target(settings));
#else
  static_cast<void>(settings);
  return {};
#endif
}

}  // namespace mailroom::cmd
