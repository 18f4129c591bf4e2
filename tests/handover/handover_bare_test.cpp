// A build without the sinks that can be left out: MAILROOM_HTTP, MAILROOM_NATS and the like are OFF.

#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "carriers/carriers.hpp"
#include "support/catch.hpp"

namespace mailroom::test::handover_bare_test {
namespace {

/// The message and hint for a URL.
std::string refusal_of(const std::string& url) {
  config::Settings settings;
  settings.sink.to = url;
  try {
    carriers::configured_carrier(settings);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    return std::string(error.what()) + "; " + error.hint();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a sink that is not built is listed, and says so by name with the option that builds it") {
  CHECK(refusal_of("https://app.example") ==
        "this mailroom is built without the sink http; build it with -D MAILROOM_HTTP=ON, or use sink.exec");
  CHECK(refusal_of("tls://nats1.example") ==
        "this mailroom is built without the sink nats; build it with -D MAILROOM_NATS=ON, or use sink.exec");
  CHECK(refusal_of("amqps://rabbit1.example") ==
        "this mailroom is built without the sink amqp; build it with -D MAILROOM_AMQP=ON, or use sink.exec");
  CHECK(
      refusal_of("kafka://broker1.example") ==
      "sink.to has an unknown scheme, 'kafka'; this mailroom is built without the sinks of URLs: use sink.exec");
  const auto check = [](const auto& kind) {
    INFO(kind.name);
    CHECK((kind.make == nullptr) == !kind.option.empty());
  };
  std::ranges::for_each(carriers::carrier_kinds(), check);
  std::ranges::for_each(carriers::relay_kinds(), check);
}

TEST_CASE("a program takes lines without any library") {
  config::Settings settings;
  settings.sink.exec = "cat";
  settings.sink.timeout = std::chrono::seconds(1);
  std::ostringstream text;
  Log log{Log::Options{}, text};
  CHECK(carriers::configured_carrier(settings)
            .make({settings, log, 1})
            ->endpoints()
            .front()
            .starts_with("cat@"));
}

}  // namespace mailroom::test::handover_bare_test
