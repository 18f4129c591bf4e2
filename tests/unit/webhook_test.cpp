// What posting to a server decides by values alone: URLs, addresses, signatures, answers.

#include <arpa/inet.h>
#include <cstring>

#include "base/error.hpp"
#include "handover/http_answer.hpp"
#include "handover/http_endpoint.hpp"
#include "handover/private_address.hpp"
#include "handover/webhook_signature.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::webhook_test {

using namespace std::chrono_literals;

namespace {

bool is_private(const std::string& text) {
  sockaddr_storage address{};
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  if (inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    std::memcpy(&address, &ipv4, sizeof ipv4);
  } else {
    REQUIRE(inet_pton(AF_INET6, text.c_str(), &ipv6.sin6_addr) == 1);
    ipv6.sin6_family = AF_INET6;
    std::memcpy(&address, &ipv6, sizeof ipv6);
  }
  const void* const bytes = &address;
  return is_private_address(*static_cast<const sockaddr*>(bytes));
}

HttpEndpoint endpoint_of(const std::string& url) {
  Settings settings;
  settings.sink_to = url;
  return parse_http_endpoint(settings);
}

Answer judged(int status, HttpEnd end = HttpEnd::answered) {
  HttpResponse response;
  response.status = status;
  response.body = "why";
  return judge_response(response, end, "cut", 0);
}

}  // namespace

TEST_CASE("addresses that are not of the public Internet are private") {
  for (const auto* address : {"127.0.0.1",
                              "127.255.0.1",
                              "0.0.0.0",
                              "10.1.2.3",
                              "100.64.0.1",
                              "169.254.169.254",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.168.1.1",
                              "198.18.0.1",
                              "198.19.255.255",
                              "224.0.0.1",
                              "255.255.255.255",
                              "192.0.0.8",
                              "192.0.2.1",
                              "::",
                              "::1",
                              "::ffff:127.0.0.1",
                              "::ffff:10.0.0.1",
                              "::7f00:1",
                              "64:ff9b::a00:1",
                              "2002:7f00:1::",
                              "2002:c0a8:101::1",
                              "fe80::1",
                              "fc00::1",
                              "fd12:3456::1",
                              "fec0::1",
                              "ff02::1",
                              "2001:db8::1",
                              "100::1",
                              "3fff:123::1",
                              "4000::1"}) {
    INFO(address);
    CHECK(is_private(address));
  }
  for (const auto* address :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255",
        "172.32.0.0", "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255",
        "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1", "2a00:1450::1"}) {
    INFO(address);
    CHECK_FALSE(is_private(address));
  }
}

TEST_CASE("the URL of a server needs https, except on this host, and has no credentials") {
  CHECK(endpoint_of("https://app.example/tokens?a=b").name == "app.example:443");
  CHECK(endpoint_of("https://app.example:8443").name == "app.example:8443");
  CHECK(endpoint_of("HTTPS://APP.example/").name == "APP.example:443");
  CHECK(endpoint_of("http://localhost:80/").name == "localhost:80");
  CHECK(endpoint_of("http://[::1]:8080/").name == "[::1]:8080");
  CHECK(endpoint_of("http://127.0.0.1/").name == "127.0.0.1:80");
  for (const auto* url : {"http://app.example/", "http://127.evil.example/", "http://localhost.evil.example/",
                          "http://128.0.0.1/"}) {
    INFO(url);
    CHECK_THROWS_WITH(endpoint_of(url), "the URL of sink.to is http:// to another host");
  }
  CHECK_THROWS_WITH(endpoint_of("https://user:geheim@app.example/"),
                    "the URL of sink.to has a user or a password");
  CHECK_THROWS_WITH(endpoint_of("https://app.example/#part"), "the URL of sink.to has a fragment");
  CHECK_THROWS_WITH(endpoint_of("https://"), "the URL of sink.to is malformed");
  CHECK_THROWS_WITH(endpoint_of("https://app.example:99999/"), "the URL of sink.to is malformed");
  CHECK_THROWS_WITH(endpoint_of("https://app.example/\nHost: x"), "the URL of sink.to is malformed");
}

TEST_CASE("a request is signed as Standard Webhooks says, by each secret") {
  // The example of the conventions.
  const std::string secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const std::string signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
  WebhookSigner one(std::vector<std::string>{secret});
  const auto sign = [](WebhookSigner& signer) {
    return signer.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})");
  };
  CHECK(sign(one) == signature);
  WebhookSigner two(std::vector<std::string>{"whsec_" + std::string(32, 'A'), secret});
  const auto both = sign(two);
  CHECK(both.starts_with("v1,"));
  CHECK(both.ends_with(" " + signature));
  CHECK_FALSE(WebhookSigner(std::vector<std::string>{}).signs());
}

TEST_CASE("a signing secret that is none is refused without being shown") {
  for (const std::string secret :
       {"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_!!!!"}) {
    INFO(secret);
    CHECK_THROWS_WITH(WebhookSigner(std::vector<std::string>{secret}),
                      "the signing secret number 1 is not whsec_ and the base64 of 24 to 64 bytes");
  }
  const test::TemporaryDirectory directory;
  const auto path = directory.write("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", 0600);
  CHECK(WebhookSigner({path}, false).signs());
  const auto readable = directory.write("readable", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", 0644);
  CHECK_THROWS_AS(WebhookSigner({readable}, false), Error);
}

TEST_CASE("the status of an answer decides") {
  const std::vector<std::pair<int, ParcelVerdict>> verdicts{
      {200, ParcelVerdict::accepted},    {202, ParcelVerdict::accepted}, {301, ParcelVerdict::unavailable},
      {307, ParcelVerdict::unavailable}, {400, ParcelVerdict::rejected}, {401, ParcelVerdict::unavailable},
      {403, ParcelVerdict::rejected},    {404, ParcelVerdict::rejected}, {407, ParcelVerdict::unavailable},
      {408, ParcelVerdict::deferred},    {410, ParcelVerdict::rejected}, {422, ParcelVerdict::rejected},
      {425, ParcelVerdict::deferred},    {429, ParcelVerdict::deferred}, {500, ParcelVerdict::deferred},
      {503, ParcelVerdict::deferred},    {599, ParcelVerdict::deferred}, {700, ParcelVerdict::unavailable}};
  for (const auto& [status, verdict] : verdicts) {
    INFO(status);
    CHECK(judged(status).verdict == verdict);
    CHECK(judged(status).code == status);
    CHECK(judged(status, HttpEnd::unsent).verdict == ParcelVerdict::unavailable);
  }
  CHECK(judged(200, HttpEnd::cut_off).verdict == ParcelVerdict::unknown);
  CHECK(judged(0, HttpEnd::cut_off).verdict == ParcelVerdict::unknown);
  CHECK(judged(0).verdict == ParcelVerdict::unknown);
  CHECK(judged(503, HttpEnd::cut_off).verdict == ParcelVerdict::deferred);
  CHECK(judged(400).reply == "why");
  CHECK(judged(429).throttled);
  CHECK_FALSE(judged(503).throttled);
}

TEST_CASE("Retry-After is a number of seconds or a date") {
  const std::time_t now = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT
  CHECK(parse_retry_after("120", now) == 120s);
  CHECK(parse_retry_after(" 0 ", now) == 0s);
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:50:37 GMT", now) == 60s);
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:48:37 GMT", now) == 0s);
  CHECK(parse_retry_after("999999999", now) == 24h);
  for (const auto* wrong : {"", "soon", "-1", "1.5", "Sun, 06 Nov 1994", "12 seconds"}) {
    INFO(wrong);
    CHECK_FALSE(parse_retry_after(wrong, now));
  }
}

TEST_CASE("an answer names tokens in JSON of one form only") {
  const auto named = parse_token_outcomes(
      R"({"tokens":[{"id":1,"outcome":"rejected","reason":"no"},{"id":2,"outcome":"deferred"},{"id":3,"outcome":"accepted"},
          {"id":4,"outcome":"lost"},{"id":"5","outcome":"rejected"},{"outcome":"rejected"},7,{"id":1.5,"outcome":"rejected"}]})");
  REQUIRE(named.size() == 3);
  CHECK(named[0].token == 1);
  CHECK(named[0].verdict == ParcelVerdict::rejected);
  CHECK(named[0].reason == "no");
  CHECK(named[1].verdict == ParcelVerdict::deferred);
  for (const auto* body :
       {"", "[]", "null", "{", R"({"tokens":{}})", R"({"tokens":[{"id":1,"outcome":"rejec)"})
    CHECK(parse_token_outcomes(body).empty());
  CHECK(parse_token_outcomes(std::string(60'000, '[')).empty());
}

}  // namespace mailroom::test::webhook_test
