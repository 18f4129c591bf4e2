// Mails over HTTP without a socket: times as people write them, bodies that are refused, and requests that
// are cut.

#include <fmt/format.h>
#include <vector>

#include "base/json.hpp"
#include "http_door/body_json.hpp"
#include "http_door/http_reader.hpp"
#include "resend_api/resend_shape.hpp"
#include "resend_api/schedule.hpp"
#include "support/catch.hpp"

namespace mailroom::test::http_door_test {
namespace {

/// Saturday.
constexpr Moment now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 28) + std::chrono::hours(12);

std::string scheduled(const std::string& text, const std::string& zone = "UTC") {
  const auto moment = resend_api::parse_schedule(text, now, zone);
  return moment ? precise_moment_text(*moment).substr(0, 19) : "none";
}

http_door::Request request_of(const std::string& method, const std::string& path,
                              const std::string& body = {}) {
  return {.method = method, .path = path, .body = body};
}

std::string fault_of(const http_door::Request& request) {
  const resend_api::ResendShape shape;
  const auto read = shape.read(request, {}, {.now = now, .timezone = "UTC"});
  const auto* fault = std::get_if<http_door::Fault>(&read);
  return fault == nullptr ? "" : shape.fault(*fault).body;
}

}  // namespace

TEST_CASE("a time is understood as it is written, or not at all") {
  const std::vector<std::vector<std::string>> table{
      {"2026-12-24T18:00:00Z", "2026-12-24T18:00:00"},
      {"2026-12-24 18:00", "2026-12-24T18:00:00"},
      {"2026-12-24T18:00:00.5+02:00", "2026-12-24T16:00:00"},
      {"2026-12-24t18:00:00-0530", "2026-12-24T23:30:00"},
      {"2027-01-05T11:52:01.858978", "2027-01-05T11:52:01"},
      {"2026-12-24", "2026-12-24T00:00:00"},
      {"2027-02-30T09:00:00Z", "none"},
      {"2026-12-24T25:00:00Z", "none"},
      {"2026-12-24T18:00:00Zx", "none"},
      {"in 1 min", "2026-11-28T12:01:00"},
      {"In An Hour", "2026-11-28T13:00:00"},
      {"in 2 weeks", "2026-12-12T12:00:00"},
      {"in 5min", "2026-11-28T12:05:00"},
      {"in five minutes", "none"},
      {"now", "2026-11-28T12:00:00"},
      {"tomorrow at 9am", "2026-11-29T09:00:00"},
      {"tomorrow", "2026-11-29T12:00:00"},
      {"today at 15:30", "2026-11-28T15:30:00"},
      {"tomorrow noon", "2026-11-29T12:00:00"},
      {"tomorrow at 12am", "2026-11-29T00:00:00"},
      {"Friday at 3pm ET", "2026-12-04T20:00:00"},
      {"next saturday", "2026-12-05T12:00:00"},
      {"monday at 9:15 pm CET", "2026-11-30T20:15:00"},
      {"tomorrow at 9am europe/vienna", "2026-11-29T08:00:00"},
      {"tomorrow at 9am +02:00", "2026-11-29T07:00:00"},
      {"tomorrow at 9am Nowhere/Land", "none"},
      {"tomorrow at 13pm", "none"},
      {"at 9am", "none"},
      {"when it suits", "none"},
      {"", "none"},
  };
  for (const auto& row : table) {
    CAPTURE(row[0]);
    CHECK(scheduled(row[0]) == row[1]);
  }
  // A wall time that is skipped moves forward, and of two the first is meant.
  CHECK(scheduled("2027-03-28T02:30:00", "Europe/Vienna") == "2027-03-28T01:30:00");
  CHECK(scheduled("2027-10-31T02:30:00", "Europe/Vienna") == "2027-10-31T00:30:00");
  CHECK(scheduled("2027-03-28T02:30:00+01:00", "Europe/Vienna") == "2027-03-28T01:30:00");
  CHECK(scheduled("2026-12-24", "Asia/Kolkata") == "2026-12-23T18:30:00");
  CHECK(scheduled("now", "../../etc/passwd") == "none");
}

TEST_CASE("an array of octets takes an octet each, and any other array is one") {
  const auto read = [](const std::string& text) {
    return std::get<nlohmann::json>(http_door::read_body(text));
  };
  CHECK(read("[0, 104, 255]").is_binary());
  CHECK(read("[]").is_array());
  CHECK(read("[1, 256]") == nlohmann::json::array({1, 256}));
  CHECK(read("[1, \"a\"]") == nlohmann::json::array({1, "a"}));
  CHECK(read("[[1], {\"a\": [2]}]")[1]["a"].is_binary());
  for (const auto* bad : {"", "{", "{} {}", "{\"a\": 1, \"a\": 1}", "\"\\ud800\"", "nul", "[1,]"})
    CHECK(std::holds_alternative<http_door::BodyProblem>(http_door::read_body(bad)));
  CHECK(std::holds_alternative<nlohmann::json>(
      http_door::read_body(std::string(32, '[') + std::string(32, ']'))));
  CHECK(std::holds_alternative<http_door::BodyProblem>(
      http_door::read_body(std::string(33, '[') + std::string(33, ']'))));
}

TEST_CASE("a request is the same wherever it is cut") {
  const std::string text =
      "\r\nPOST //emails/ HTTP/1.1\r\nHost: x\r\nA:  b \r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n"
      "GET /emails HTTP/1.1\r\nhost: x\r\n\r\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    http_door::HttpReader reader(10);
    std::vector<http_door::Request> requests;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      auto part = std::string_view(text).substr(at, piece);
      for (auto event = reader.take(part); event != http_door::HttpReader::Event::more;
           event = reader.take(part)) {
        REQUIRE(event != http_door::HttpReader::Event::malformed);
        if (event == http_door::HttpReader::Event::head) reader.go_on(true);
        if (event == http_door::HttpReader::Event::whole) requests.push_back(reader.take_request());
      }
    }
    CAPTURE(piece);
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].path == "//emails/");
    CHECK(requests[0].body == "abcde");
    CHECK(requests[0].header("a") == "b");
    CHECK(requests[1].method == "GET");
  }
}

TEST_CASE("what a request lacks, or has too much, is named") {
  CHECK_THAT(fault_of(request_of("POST", "/emails", "{}")),
             Catch::Matchers::ContainsSubstring("Missing `from` field."));
  CHECK_THAT(fault_of(request_of("POST", "/emails/batch", "[{}]")),
             Catch::Matchers::ContainsSubstring("[0] Missing `from` field."));
  CHECK_THAT(fault_of(request_of("GET", "/emails/17")),
             Catch::Matchers::ContainsSubstring("invalid_parameter"));
  CHECK_THAT(fault_of(request_of("GET", "/domains")), Catch::Matchers::ContainsSubstring("domains"));
  CHECK_THAT(fault_of(request_of("PUT", "/emails")), Catch::Matchers::ContainsSubstring("405"));
  CHECK(fault_of(request_of("GET", "//emails/?limit=%31")).empty());
}

}  // namespace mailroom::test::http_door_test
