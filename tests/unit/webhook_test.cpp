// What posting to a server decides by values alone: URLs, addresses, signatures, answers.

#include "carriers/http/webhook.hpp"

#include "base/error.hpp"
#include "carriers/http/answer.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::webhook_test {

using namespace std::chrono_literals;

namespace {

http::HttpEndpoint endpoint_of(const std::string& url) {
  config::Settings settings;
  settings.sink.to = url;
  return http::parse_http_endpoint(settings);
}

delivery::Answer judged(int status, http::HttpEnd end = http::HttpEnd::answered) {
  http::HttpResponse response;
  response.status = status;
  response.body = "why";
  return http::judge_response({.end = end, .response = response, .failure = "cut"}, 0);
}

}  // namespace

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
  http::WebhookSigner one(std::vector<std::string>{secret});
  const auto sign = [](http::WebhookSigner& signer) {
    return signer.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})");
  };
  CHECK(sign(one) == signature);
  http::WebhookSigner two(std::vector<std::string>{"whsec_" + std::string(32, 'A'), secret});
  const auto both = sign(two);
  CHECK(both.starts_with("v1,"));
  CHECK(both.ends_with(" " + signature));
  CHECK_FALSE(http::WebhookSigner(std::vector<std::string>{}).signs());
}

TEST_CASE("a signing secret that is none is refused without being shown") {
  for (const std::string secret :
       {"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_!!!!"}) {
    INFO(secret);
    CHECK_THROWS_WITH(http::WebhookSigner(std::vector<std::string>{secret}),
                      "the signing secret number 1 is not whsec_ and the base64 of 24 to 64 bytes");
  }
  const test::TemporaryDirectory directory;
  const auto path = directory.write("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", 0600);
  CHECK(http::WebhookSigner({path}, false).signs());
  const auto readable = directory.write("readable", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", 0644);
  CHECK_THROWS_AS(http::WebhookSigner({readable}, false), Error);
}

TEST_CASE("the status of an answer decides") {
  const std::vector<std::pair<int, delivery::Verdict>> verdicts{
      {200, delivery::Verdict::accepted},    {202, delivery::Verdict::accepted},
      {301, delivery::Verdict::unavailable}, {307, delivery::Verdict::unavailable},
      {400, delivery::Verdict::rejected},    {401, delivery::Verdict::unavailable},
      {403, delivery::Verdict::rejected},    {404, delivery::Verdict::rejected},
      {407, delivery::Verdict::unavailable}, {408, delivery::Verdict::deferred},
      {410, delivery::Verdict::rejected},    {422, delivery::Verdict::rejected},
      {425, delivery::Verdict::deferred},    {429, delivery::Verdict::deferred},
      {500, delivery::Verdict::deferred},    {503, delivery::Verdict::deferred},
      {599, delivery::Verdict::deferred},    {700, delivery::Verdict::unavailable}};
  for (const auto& [status, verdict] : verdicts) {
    INFO(status);
    CHECK(judged(status).verdict == verdict);
    CHECK(judged(status).code == status);
    CHECK(judged(status, http::HttpEnd::unsent).verdict == delivery::Verdict::unavailable);
  }
  CHECK(judged(200, http::HttpEnd::cut_off).verdict == delivery::Verdict::unknown);
  CHECK(judged(0, http::HttpEnd::cut_off).verdict == delivery::Verdict::unknown);
  CHECK(judged(0).verdict == delivery::Verdict::unknown);
  CHECK(judged(503, http::HttpEnd::cut_off).verdict == delivery::Verdict::deferred);
  CHECK(judged(400).reply == "why");
  CHECK(judged(429).throttled);
  CHECK_FALSE(judged(503).throttled);
}

TEST_CASE("Retry-After is a number of seconds or a date") {
  const std::time_t now = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT
  CHECK(http::parse_retry_after("120", now) == 120s);
  CHECK(http::parse_retry_after(" 0 ", now) == 0s);
  CHECK(http::parse_retry_after("Sun, 06 Nov 1994 08:50:37 GMT", now) == 60s);
  CHECK(http::parse_retry_after("Sun, 06 Nov 1994 08:48:37 GMT", now) == 0s);
  CHECK(http::parse_retry_after("999999999", now) == 24h);
  for (const auto* wrong : {"", "soon", "-1", "1.5", "Sun, 06 Nov 1994", "12 seconds"}) {
    INFO(wrong);
    CHECK_FALSE(http::parse_retry_after(wrong, now));
  }
}

TEST_CASE("an answer names tokens in JSON of one form only") {
  const auto named = http::parse_token_outcomes(
      R"({"tokens":[{"id":1,"outcome":"rejected","reason":"no"},{"id":2,"outcome":"deferred"},{"id":3,"outcome":"accepted"},
          {"id":4,"outcome":"lost"},{"id":"5","outcome":"rejected"},{"outcome":"rejected"},7,{"id":1.5,"outcome":"rejected"}]})");
  REQUIRE(named.size() == 3);
  CHECK(named[0].token == 1);
  CHECK(named[0].verdict == delivery::Verdict::rejected);
  CHECK(named[0].reason == "no");
  CHECK(named[1].verdict == delivery::Verdict::deferred);
  for (const auto* body :
       {"", "[]", "null", "{", R"({"tokens":{}})", R"({"tokens":[{"id":1,"outcome":"rejec)"})
    CHECK(http::parse_token_outcomes(body).empty());
  CHECK(http::parse_token_outcomes(std::string(60'000, '[')).empty());
}

}  // namespace mailroom::test::webhook_test
