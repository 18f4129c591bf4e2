// The server that lines are posted to, without a database: what each of its answers makes of a line.

#include <sstream>

#include "carriers/http/webhook.hpp"
#include "handed_over.hpp"
#include "support/catch.hpp"
#include "support/refusing_port.hpp"
#include "support/test_certificate.hpp"
#include "webhook_process.hpp"

namespace mailroom::test::http_carrier_test {

using namespace std::chrono_literals;

namespace {

const std::string first_secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const std::string second_secret = "whsec_c2Vjb25kLXNlY3JldC1vZi10aGlydHktdHdvLWJ5dGVz";

config::Settings settings_for(const std::string& url) {
  config::Settings settings;
  settings.sink.to = url;
  settings.sink.timeout = 20s;
  settings.sink.in_flight = 64;
  return settings;
}

struct HttpRig {
  http::HttpCarrier carrier;
  std::vector<std::string> bodies;

  explicit HttpRig(const config::Settings& settings, const std::vector<std::string>& secrets = {})
      : carrier(
            http::parse_http_endpoint(settings),
            std::make_unique<http::WebhookProtocol>(http::WebhookSigner(secrets), settings.sink.event_source),
            settings.sink.in_flight) {
    bodies.reserve(1000);
  }
  void submit(int lines) {
    for (int i = 1; i <= lines; ++i) {
      const auto id = std::to_string(i);
      bodies.push_back(R"({"tokens":[{"id":)" + id + "}]}");
      delivery::Message message;
      message.id = i;
      message.attempt = 1;
      message.tokens = {i};
      message.message_id = "test.1." + id + ".00";
      message.body = bodies.back();
      carrier.submit(std::move(message));
    }
  }
};

delivery::Answer answer_of(const config::Settings& settings) {
  HttpRig rig(settings);
  rig.submit(1);
  const auto answers = answers_of(rig.carrier);
  REQUIRE(answers.size() == 1);
  return answers.front();
}

delivery::Answer answer_in(const std::string& mode, Milliseconds timeout = 20s) {
  WebhookProcess server(mode);
  auto settings = settings_for(server.url());
  settings.sink.timeout = timeout;
  return answer_of(settings);
}

}  // namespace

TEST_CASE("many lines are posted at the same time, each with a signature of every secret") {
  WebhookProcess server("ok", {"--secret", first_secret, "--secret", second_secret});
  HttpRig rig(settings_for(server.url()), {first_secret, second_secret});
  rig.submit(300);
  const auto answers = answers_of(rig.carrier);
  CHECK(answers.size() == 300);
  for (const auto& answer : answers) {
    INFO(answer.reply);
    CHECK(answer.verdict == delivery::Verdict::accepted);
    CHECK(answer.code == 200);
    CHECK(answer.sink == "127.0.0.1:" + server.port());
  }
  CHECK(taken_tokens(server.taken()).size() == 300);
}

TEST_CASE("a request is a CloudEvent in binary mode where the settings name its source") {
  WebhookProcess server("ok");
  auto settings = settings_for(server.url());
  settings.sink.event_source = "https://app.example/mailroom";
  HttpRig rig(settings);
  delivery::Message message;
  message.id = 1;
  message.message_id = "p%C3%A4.1.1.00";
  message.queue = "pä";
  message.action = "activation";
  message.created_at = 1795438488;
  message.body = R"({"tokens":[]})";
  rig.carrier.submit(message);
  CHECK(answers_of(rig.carrier).at(0).verdict == delivery::Verdict::accepted);
  const auto taken = read_file(server.taken());
  CHECK(taken.substr(taken.find("ce-")) ==
        "ce-specversion: 1.0\nce-id: p%25C3%25A4.1.1.00\nce-source: https://app.example/mailroom\n"
        "ce-type: mailroom.activation\nce-subject: p%C3%A4\nce-time: 2026-11-23T12:54:48Z\n");
}

TEST_CASE("a server that wants another signature rejects the line") {
  WebhookProcess server("ok", {"--secret", second_secret});
  HttpRig rig(settings_for(server.url()), {first_secret});
  rig.submit(1);
  const auto answers = answers_of(rig.carrier);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].verdict == delivery::Verdict::rejected);
  CHECK(answers[0].reply == "the signature is wrong");
}

TEST_CASE("the status decides what became of a line") {
  const std::map<std::string, delivery::Verdict> verdicts{
      {"204", delivery::Verdict::accepted},   {"400", delivery::Verdict::rejected},
      {"404", delivery::Verdict::rejected},   {"401", delivery::Verdict::unavailable},
      {"408", delivery::Verdict::deferred},   {"425", delivery::Verdict::deferred},
      {"500", delivery::Verdict::deferred},   {"503", delivery::Verdict::deferred},
      {"304", delivery::Verdict::unavailable}};
  for (const auto& [status, verdict] : verdicts) {
    INFO(status);
    const auto answer = answer_in(status);
    CHECK(answer.verdict == verdict);
    CHECK(answer.code == std::stoi(status));
  }
}

TEST_CASE("a server that asks for time gets it") {
  const auto answer = answer_in("throttle");
  CHECK(answer.verdict == delivery::Verdict::deferred);
  CHECK(answer.throttled);
  CHECK(answer.wait == Milliseconds(2000));
}

TEST_CASE("a redirect is not followed") {
  const auto answer = answer_in("redirect");
  CHECK(answer.verdict == delivery::Verdict::unavailable);
  CHECK(answer.reply == "the server redirects to /elsewhere, which is not followed");
  CHECK(answer_in("307").reply == "the server redirects, and names no address");
}

TEST_CASE("an answer that is not whole leaves the line unknown") {
  for (const std::string mode : {"half", "half-header", "drop", "lose"}) {
    INFO(mode);
    CHECK(answer_in(mode).verdict == delivery::Verdict::unknown);
  }
  CHECK(answer_in("silent", 1s).verdict == delivery::Verdict::unknown);
}

TEST_CASE("a request is not repeated when a kept connection ends without an answer") {
  WebhookProcess server("drop-kept");
  HttpRig rig(settings_for(server.url()));
  rig.submit(1);
  CHECK(answers_of(rig.carrier).at(0).verdict == delivery::Verdict::accepted);
  rig.submit(2);
  const auto answers = answers_of(rig.carrier);
  REQUIRE(answers.size() == 2);
  // Of these two one has the kept connection, and one a new one.
  int unknown = 0;
  for (const auto& answer : answers)
    unknown += answer.verdict == delivery::Verdict::unknown ? 1 : 0;
  CHECK(unknown == 1);
  CHECK(taken_lines(server.taken()).size() == 3);
}

TEST_CASE("a huge answer is read in part only") {
  const auto body = answer_in("big");
  CHECK(body.verdict == delivery::Verdict::accepted);
  CHECK(body.reply.size() < 100'000);
  CHECK(answer_in("big-header").verdict == delivery::Verdict::unknown);
}

TEST_CASE("a server that cannot be reached is unavailable") {
  const RefusingPort port;
  const auto answer = answer_of(settings_for("http://127.0.0.1:" + std::to_string(port.port()) + "/"));
  CHECK(answer.verdict == delivery::Verdict::unavailable);
  CHECK(answer_of(settings_for("https://no-such-host.invalid/")).verdict == delivery::Verdict::unavailable);
}

TEST_CASE("a server is trusted by its certificate only") {
  const TestCertificate certificate({.names = "DNS:localhost"});
  WebhookProcess server("ok", {"--certificate", certificate.certificate(), "--key", certificate.key()});
  auto settings = settings_for("https://localhost:" + server.port() + "/");
  CHECK(answer_of(settings).verdict == delivery::Verdict::unavailable);
  settings.sink.ca_file = certificate.certificate();
  CHECK(answer_of(settings).verdict == delivery::Verdict::accepted);
  settings.sink.to = "https://127.0.0.1:" + server.port() + "/";
  const auto other_name = answer_of(settings);
  CHECK(other_name.verdict == delivery::Verdict::unavailable);
  CHECK(other_name.reply.find("127.0.0.1") != std::string::npos);
  CHECK(taken_lines(server.taken()).size() == 1);
}

TEST_CASE("cancel answers what is left at once") {
  WebhookProcess server("silent");
  HttpRig rig(settings_for(server.url()));
  rig.submit(3);
  CHECK(eventually([&] { return taken_lines(server.taken()).size() == 3; }));
  rig.carrier.cancel();
  const auto answers = answers_of(rig.carrier);
  REQUIRE(answers.size() == 3);
  for (const auto& answer : answers)
    CHECK(answer.verdict == delivery::Verdict::unknown);
}

}  // namespace mailroom::test::http_carrier_test
