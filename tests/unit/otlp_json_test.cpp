// Spans as a collector of traces reads them, and where they go.

#include "otlp/otlp_json.hpp"

#include <map>

#include "base/error.hpp"
#include "base/json.hpp"
#include "otlp/trace_target.hpp"
#include "support/catch.hpp"

namespace mailroom::test::otlp_json_test {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

Json request_json(std::span<const trace::Span> spans) {
  std::string text;
  otlp::append_otlp_json(text, spans);
  return parse_json(text);
}

Json span_json(const trace::Span& span) {
  const auto request = request_json({&span, 1});
  return request["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
}

Json attribute(const Json& span, const std::string& key) {
  for (const auto& each : span["attributes"]) {
    if (each["key"] == key) return each["value"];
  }
  return nullptr;
}

trace::Span carried() {
  const auto parent = *trace::parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  return {.trace = parent.trace,
          .id = {1, 2, 3, 4, 5, 6, 7, 8},
          .parent = parent.span,
          .kind = trace::SpanKind::consumer,
          .operation = "carry",
          .operation_type = "process",
          .start = trace::SpanTime(1'800'000'000s),
          .end = trace::SpanTime(1'800'000'000s + 5ms),
          .queue = "mailroom",
          .action = "message",
          .token = 8,
          .message = 7,
          .outcome = "deferred",
          .code = 451,
          .sink = "[2001:db8::1]:25",
          .has_failed = true,
          .links = {{parent.trace, parent.span}}};
}

}  // namespace

TEST_CASE("a span has the names of OpenTelemetry's messaging conventions") {
  const auto span = span_json(carried());
  CHECK(span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(span["spanId"] == "0102030405060708");
  CHECK(span["parentSpanId"] == "00f067aa0ba902b7");
  CHECK(span["name"] == "carry mailroom");
  CHECK(span["kind"] == 5);
  CHECK(span["startTimeUnixNano"] == "1800000000000000000");
  CHECK(span["endTimeUnixNano"] == "1800000000005000000");
  CHECK(span["status"]["code"] == 2);
  CHECK(span["links"][0]["spanId"] == "00f067aa0ba902b7");
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"messaging.system", "mailroom"},
                                          {"messaging.destination.name", "mailroom"},
                                          {"messaging.operation.name", "carry"},
                                          {"messaging.operation.type", "process"},
                                          {"messaging.message.id", "message:7"},
                                          {"mailroom.outcome", "deferred"},
                                          {"mailroom.action", "message"},
                                          {"server.address", "[2001:db8::1]"},
                                          {"error.type", "451"}}) {
    CAPTURE(key);
    CHECK(attribute(span, key)["stringValue"] == value);
  }
  CHECK(attribute(span, "mailroom.token")["intValue"] == 8);
  CHECK(attribute(span, "mailroom.code")["intValue"] == 451);
  CHECK(attribute(span, "server.port")["intValue"] == 25);
}

TEST_CASE("what a span does not have is left out, and its end is not before its start") {
  auto bare = carried();
  bare.parent.reset();
  bare.message = 0;
  bare.code = 0;
  bare.has_failed = false;
  bare.sink = "/usr/bin/sender";
  bare.end = bare.start - 1s;
  const auto span = span_json(bare);
  CHECK_FALSE(span.contains("parentSpanId"));
  CHECK(attribute(span, "messaging.message.id")["stringValue"] == "token:8");
  CHECK(attribute(span, "mailroom.code").is_null());
  CHECK(attribute(span, "error.type").is_null());
  CHECK(attribute(span, "server.address").is_null());
  CHECK(attribute(span, "mailroom.sink")["stringValue"] == "/usr/bin/sender");
  CHECK(span["status"]["code"] == 0);
  CHECK(span["endTimeUnixNano"] == span["startTimeUnixNano"]);
}

TEST_CASE("names of any bytes make valid JSON") {
  for (const std::string name : {"a\"b\\c", "line\nbreak\x01", "caf\xc3\xa9", "\xff\xfe broken", ""}) {
    auto span = carried();
    span.queue = name;
    span.action = name;
    span.sink = name;
    CAPTURE(name);
    CHECK_NOTHROW(span_json(span));
  }
  CHECK(request_json({})["resourceSpans"][0]["scopeSpans"][0]["spans"].empty());
}

TEST_CASE("headers come from lines or from pairs, and none that mailroom sets itself") {
  CHECK(otlp::headers_of_lines("# a key\nAuthorization: Bearer abc:d\n\nX-Scope: 7\n", "f") ==
        std::vector<std::string>{"Authorization: Bearer abc:d", "X-Scope: 7"});
  CHECK(otlp::headers_of_pairs("authorization=Basic%20YTpi, x-scope=a=b,", "v") ==
        std::vector<std::string>{"authorization: Basic YTpi", "x-scope: a=b"});
  for (const auto* lines : {"no colon", ": x", "X: ", "X Y: z", "Content-Type: x", "X: caf\xc3\xa9"}) {
    CAPTURE(lines);
    CHECK_THROWS_AS(otlp::headers_of_lines(lines, "f"), Error);
  }
  for (const auto* pairs : {"x", "=y", "x=", "x=a%0Ab", "host=y"}) {
    CAPTURE(pairs);
    CHECK_THROWS_AS(otlp::headers_of_pairs(pairs, "v"), Error);
  }
}

TEST_CASE("with a key in a header an endpoint on another host needs TLS") {
  CHECK_THROWS_AS(otlp::trace_endpoint("http://traces.example", http::HttpContent::secret), Error);
  CHECK_NOTHROW(otlp::trace_endpoint("https://traces.example", http::HttpContent::secret));
}

TEST_CASE("spans name their instance and environment") {
  std::string text;
  otlp::append_otlp_json(text, {}, otlp::resource_attributes("pro\"d", "host:7"));
  std::map<std::string, std::string> attributes;
  const auto request = parse_json(text);
  for (const auto& each : request["resourceSpans"][0]["resource"]["attributes"])
    attributes[each["key"]] = each["value"]["stringValue"];
  CHECK(attributes["service.instance.id"] == "host:7");
  CHECK(attributes["deployment.environment.name"] == "pro\"d");
}

TEST_CASE("an endpoint without a path gets that of OTLP, and http:// may go to another host") {
  CHECK(otlp::trace_endpoint("http://127.0.0.1:4318").url == "http://127.0.0.1:4318/v1/traces");
  CHECK(otlp::trace_endpoint("https://traces.example/").url == "https://traces.example/v1/traces");
  CHECK(otlp::trace_endpoint("http://collector.example:4318/otlp/v1/traces").url ==
        "http://collector.example:4318/otlp/v1/traces");
  for (const auto* url : {"", "4318", "ftp://traces.example", "http://user:password@traces.example",
                          "http://", "http://x/#y"}) {
    CAPTURE(url);
    CHECK_THROWS_AS(otlp::trace_endpoint(url), Error);
  }
}

}  // namespace mailroom::test::otlp_json_test
