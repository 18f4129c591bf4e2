#include "metrics/http_request.hpp"

#include "config/listen_address.hpp"
#include "support/catch.hpp"

namespace mailroom::test::http_request_test {
namespace {

HttpRequest request_of(const std::string& bytes) {
  return std::get<HttpRequest>(parse_http_request(bytes).value());
}

int refusal_of(const std::string& bytes) {
  return std::get<HttpRefusal>(parse_http_request(bytes).value()).status;
}

}  // namespace

TEST_CASE("the head of a request is read") {
  const auto request =
      request_of("GET /metrics?a=b HTTP/1.1\r\nAccept: x\r\nhOsT:  Mail.Example:9464 \r\n\r\nrest");
  CHECK(request.path == "/metrics");
  CHECK(request.host == "mail.example");
  CHECK(!request.is_head);
  CHECK(request_of("HEAD / HTTP/1.0\n\n").is_head);
  CHECK(request_of("GET / HTTP/1.1\r\nHost: [::1]:9464\r\n\r\n").host == "::1");
  CHECK(request_of("GET / HTTP/1.1\r\nHost: [\r\n\r\n").host.empty());
}

TEST_CASE("a head without its end needs more bytes, up to a limit") {
  for (const auto* part : {"", "G", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n"})
    CHECK(!parse_http_request(part));
  CHECK(!parse_http_request(std::string(longest_http_head - 1, 'x')));
  CHECK(refusal_of(std::string(longest_http_head, 'x')) == 431);
}

TEST_CASE("what is no request of HTTP/1, or asks for more than a page, is refused") {
  CHECK(refusal_of("\r\n") == 400);
  CHECK(refusal_of("GET /\r\n\r\n") == 400);
  CHECK(refusal_of("GET / HTTP/2\r\n\r\n") == 400);
  CHECK(refusal_of("GET  / HTTP/1.1\r\n\r\n") == 400);
  CHECK(refusal_of("DELETE / HTTP/1.1\r\n\r\n") == 405);
  CHECK(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n") == 400);
}

TEST_CASE("addresses to listen at are read, and written the same way") {
  const auto text = [](const std::string& written) {
    const auto address = parse_listen_address(written);
    return address ? address->text() : "none";
  };
  CHECK(text("127.0.0.1:9464") == "127.0.0.1:9464");
  CHECK(text("0.0.0.0:0") == "0.0.0.0:0");
  CHECK(text("[::1]:9464") == "[::1]:9464");
  CHECK(text("localhost:80") == "127.0.0.1:80");
  CHECK(text("/run/mailroom.sock") == "unix:/run/mailroom.sock");
  CHECK(text("unix:/run/mailroom.sock") == "unix:/run/mailroom.sock");
  for (const auto* wrong : {"", ":9464", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                            "127.0.0.1:94 64", "::1:9464", "[::1]", "[]:1", "[x]:1", "mail.example:9464",
                            "300.0.0.1:1", "unix:run.sock", "run.sock"})
    CHECK(text(wrong) == "none");
}

}  // namespace mailroom::test::http_request_test
