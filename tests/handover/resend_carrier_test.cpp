// The server that mails are posted to in place of Resend, without a database: what each of its answers makes
// of one mail and of several.

#include <sstream>

#include "base/json.hpp"
#include "carriers/relay_series.hpp"
#include "carriers/resend/carrier.hpp"
#include "delivery/dispatcher.hpp"
#include "support/carrier_contract.hpp"
#include "support/refusing_port.hpp"
#include "support/relay_paths.hpp"
#include "support/temporary_directory.hpp"
#include "webhook_process.hpp"

namespace mailroom::test::resend_carrier_test {

using namespace std::chrono_literals;

namespace {

constexpr const char* key = "re_geheim_geheim";

struct ResendRig {
  TemporaryDirectory directory;
  config::RelayPath path = path_of({});
  mail::ConfiguredMail mail{};

  explicit ResendRig(const std::string& endpoint, const std::string& more_relays = {}) {
    path.targets = config::parse_relays("resend://" + more_relays);
    path.options["send.resend_endpoint"] = endpoint;
    path.options["send.resend_key_file"] = directory.write("key", std::string(key) + "\n", 0600);
  }
  explicit ResendRig(const ServerProcess& server, const std::string& more_relays = {})
      : ResendRig(server.url(""), more_relays) {}

  std::unique_ptr<delivery::Carrier> carrier() { return carriers::make_relays(path); }
  std::vector<carriers::SinkFinding> findings() { return carriers::check_relay_list(path, mail); }

  delivery::Answer answer(int mails = 1, int senders = 1) {
    const auto made = carrier();
    return answer_of(*made, mails, senders);
  }

  /// Of a message with the tokens 1, 2 and so on.
  static delivery::Answer answer_of(delivery::Carrier& carrier, int mails, int senders = 1) {
    std::string body;
    delivery::Message message{.id = 1, .queue = "mailroom"};
    for (int i = 1; i <= mails; ++i) {
      const auto mail = fmt::format(
          "From: no-reply@app.example\r\nTo: Ada <u{0}@mail.example>\r\nSubject: x\r\n"
          "Message-ID: <m{0}@app.example>\r\n\r\nhello {0}\r\n",
          i);
      message.mails.push_back({.token = i,
                               .envelope = {.from = "no-reply@app.example",
                                            .to = fmt::format("u{}@mail.example", i),
                                            .author = fmt::format("s{}@app.example", i % senders)},
                               .size = mail.size()});
      message.tokens.push_back(i);
      body += mail;
    }
    if (mails == 1) {
      message.envelope = message.mails.front().envelope;
      message.mails.clear();
    }
    message.body = body;
    carrier.submit(message);
    const auto answers = all_answers(carrier);
    REQUIRE(answers.size() == 1);
    return answers.front();
  }
};

std::vector<nlohmann::json> requests_of(const ServerProcess& server) {
  std::vector<nlohmann::json> requests;
  std::istringstream lines(read_file(server.taken()));
  for (std::string line; std::getline(lines, line);)
    requests.push_back(parse_json(line));
  return requests;
}

ServerProcess error_server(std::vector<std::string> options) {
  return ServerProcess("provider_server.py", "error", options);
}

std::string verdicts_of(const delivery::Answer& answer) {
  std::string text;
  for (const auto& token : answer.tokens)
    text += fmt::format("{} {} {}\n", token.token, delivery::verdict_name(token.verdict), token.reason);
  return text;
}

}  // namespace

TEST_CASE("Resend keeps the promises of every carrier") {
  const ServerProcess server("provider_server.py", "ok");
  check_carrier("resend", *ResendRig(server).carrier(), delivery::Verdict::accepted);
  const RefusingPort closed;
  check_carrier("resend", *ResendRig(fmt::format("http://127.0.0.1:{}", closed.port())).carrier(),
                delivery::Verdict::unavailable);
  const ServerProcess silent("provider_server.py", "silent");
  check_cancel("resend", *ResendRig(silent).carrier());
}

TEST_CASE("a mail is posted to Resend with its fields, a key of its own, and its id is kept") {
  const ServerProcess server("provider_server.py", "ok");
  ResendRig rig(server);
  const auto answer = rig.answer();
  CHECK(answer.reply == "id-0");
  CHECK(answer.code == 200);
  rig.answer();
  const auto requests = requests_of(server);
  REQUIRE(requests.size() == 2);
  const auto& request = requests.front();
  CHECK(request["path"] == "/emails");
  CHECK(request["body"] == parse_json(R"({"from": "no-reply@app.example",
    "to": ["Ada <u1@mail.example>"], "subject": "x", "text": "hello 1\n",
    "tags": [{"name": "queue", "value": "mailroom"}, {"name": "token", "value": "1"}]})"));
  CHECK(request["headers"]["authorization"] == std::string("Bearer ") + key);
  const auto idempotency = request["headers"]["idempotency-key"].get<std::string>();
  CHECK(idempotency.starts_with("m1@app.example/"));
  CHECK(idempotency.size() == std::string_view("m1@app.example/").size() + 32);
  CHECK(requests[1]["headers"]["idempotency-key"] == idempotency);
}

TEST_CASE("several mails are one request, whose answer has an id of each") {
  const ServerProcess server("provider_server.py", "ok");
  ResendRig rig(server);
  const auto answer = rig.answer(3);
  CHECK(answer.verdict == delivery::Verdict::accepted);
  CHECK(verdicts_of(answer) == "1 accepted id-0-0\n2 accepted id-0-1\n3 accepted id-0-2\n");
  rig.answer(2);
  const auto requests = requests_of(server);
  REQUIRE(requests.size() == 2);
  CHECK(requests[0]["path"] == "/emails/batch");
  CHECK(requests[0]["headers"]["x-batch-validation"] == "permissive");
  CHECK(requests[0]["body"].size() == 3);
  CHECK(requests[0]["body"][2]["text"] == "hello 3\n");
  CHECK(requests[0]["body"][2]["to"] == nlohmann::json::array({"Ada <u3@mail.example>"}));
  CHECK(requests[0]["headers"]["idempotency-key"] != requests[1]["headers"]["idempotency-key"]);
}

TEST_CASE("one of several mails that Resend refuses is rejected, whether it names it or refuses all") {
  const ServerProcess partly("provider_server.py", "partly");
  CHECK(verdicts_of(ResendRig(partly).answer(3)) ==
        "1 accepted id-0-0\n2 rejected Invalid `to` field\n3 accepted id-0-2\n");
  const ServerProcess whole("provider_server.py", "whole");
  auto rig = ResendRig(whole);
  rig.path.connections = 1;
  const auto answer = rig.answer(4);
  CHECK(answer.verdict == delivery::Verdict::accepted);
  CHECK(verdicts_of(answer) ==
        "1 accepted id-1\n2 rejected validation_error: Invalid `to` field\n3 accepted id-3\n"
        "4 rejected validation_error: Invalid `to` field\n");
  CHECK(answer.tokens[1].code == 422);
  CHECK(requests_of(whole).size() == 5);
}

TEST_CASE("mails that go by themselves, as one of them was refused, all have an answer if Resend goes away") {
  const ServerProcess server("provider_server.py", "whole");
  ResendRig rig(server);
  rig.path.connections = 1;
  const auto made = rig.carrier();
  rig.directory.write("key", "no key\n", 0600);
  CHECK(ResendRig::answer_of(*made, 3).verdict == delivery::Verdict::unavailable);
}

TEST_CASE("a request that lost its answer is unknown, at whichever byte") {
  const ServerProcess server("provider_server.py", "cut");
  ResendRig rig(server);
  rig.path.connections = 1;
  const auto made = rig.carrier();
  int unknown = 0;
  delivery::Answer last;
  do {
    last = ResendRig::answer_of(*made, 1);
    if (last.verdict == delivery::Verdict::unknown) ++unknown;
  } while (last.verdict == delivery::Verdict::unknown && unknown < 500);
  CHECK(last.verdict == delivery::Verdict::accepted);
  CHECK(last.reply == fmt::format("id-{}", unknown));
  CHECK(unknown > 80);
}

TEST_CASE("no request leaves before the limit that Resend names is free again") {
  const ServerProcess server("provider_server.py", "limited");
  ResendRig rig(server);
  const auto made = rig.carrier();
  ResendRig::answer_of(*made, 1);
  ResendRig::answer_of(*made, 2);
  const auto requests = requests_of(server);
  REQUIRE(requests.size() == 2);
  CHECK(requests[1]["at"].get<double>() - requests[0]["at"].get<double>() > 0.9);
}

TEST_CASE("an account that cannot send makes Resend unavailable for one mail and for several") {
  const auto server = error_server({"403", "validation_error", "The app.example domain is not verified"});
  for (const auto& [mails, senders] : std::vector<std::pair<int, int>>{{1, 1}, {3, 1}, {3, 3}}) {
    CAPTURE(mails, senders);
    const auto answer = ResendRig(server).answer(mails, senders);
    CHECK(answer.verdict == delivery::Verdict::unavailable);
    CHECK(answer.reply == "validation_error: The app.example domain is not verified");
    for (const auto& token : answer.tokens)
      CHECK(token.verdict == delivery::Verdict::unavailable);
  }
  // Of three senders one might be verified.
  CHECK(requests_of(server).size() == 1 + 1 + 4);
}

TEST_CASE("doctor sees the key and the domain at Resend, and sends nothing") {
  TemporaryDirectory directory;
  const auto said = [](const std::vector<carriers::SinkFinding>& findings) {
    std::string text;
    for (const auto& finding : findings)
      text += finding.reason + " | " + finding.hint + "\n";
    return text;
  };
  const auto file = directory.write(
      "domains",
      R"({"data": [{"name": "app.example", "status": "verified"}, {"name": "b.example", "status": "pending"}]})");
  const ServerProcess server("provider_server.py", "domains", {file});
  ResendRig rig(server);
  rig.mail = mail_from("no-reply@app.example");
  CHECK(said(rig.findings()).find("app.example is a verified domain") != std::string::npos);
  rig.mail = mail_from("no-reply@b.example");
  CHECK(said(rig.findings()).find("the domain b.example is not verified: its status is pending") !=
        std::string::npos);
  rig.mail = mail_from("no-reply@c.example");
  CHECK(said(rig.findings()).find("Resend does not have the domain c.example") != std::string::npos);
  const auto restricted =
      error_server({"401", "restricted_api_key", "This API key is restricted to only send emails"});
  CHECK(said(ResendRig(restricted).findings()).find("may only send mails") != std::string::npos);
  const auto unknown = error_server({"400", "validation_error", "API key is invalid"});
  CHECK(said(ResendRig(unknown).findings()).find("refuses the key: validation_error: API key is invalid") !=
        std::string::npos);
  for (const auto& [options, expected] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"429", "rate_limit_exceeded", "Too many requests"}, "was asked too often"},
           {{"429", "daily_quota_exceeded", "You have reached your daily quota"},
            "quota of the account is used up"},
           {{"403", "suspended_api_key", "This API key is suspended"},
            "has suspended the key or its account"},
           {{"403", "validation_error", "Your account has been suspended"},
            "has suspended the key or its account"},
           {{"403", "", ""}, "does not let the key ask for domains"},
           {{"404", "not_found", "The requested endpoint does not exist"},
            "does not answer as the API of Resend"},
           {{"500", "application_error", "An unexpected error occurred"}, "has a fault of its own, 500"},
           {{"503", "", ""}, "has a fault of its own, 503"}}) {
    INFO(options[0] << " " << options[1]);
    const auto text = said(ResendRig(error_server(options)).findings());
    CHECK(text.find(expected) != std::string::npos);
    CHECK(text.find("refuses the key") == std::string::npos);
    CHECK(text.find("send.resend_key_file") == std::string::npos);
  }
  for (const auto& finding : ResendRig(unknown).findings())
    CHECK(finding.reason.find(key) == std::string::npos);
  CHECK(read_file(server.taken()).empty());
}

TEST_CASE("mails leave together only where Resend is the only relay and has no rate") {
  std::optional<config::Rate> rate;
  const auto traits = [&](const std::string& relays) {
    auto path = path_of(relays);
    path.rate = rate;
    return carriers::mail_traits(path);
  };
  CHECK(traits("resend://").together == 100);
  CHECK(traits("resend://").recognises);
  CHECK(traits("resend://, smtp://relay.example").together == 1);
  CHECK_FALSE(traits("resend://, smtp://relay.example").recognises);
  CHECK(traits("smtp://relay.example").together == 1);
  rate = config::Rate{2, 1000ms};
  CHECK(traits("resend://").together == 1);
  CHECK(traits("resend://").recognises);
}

}  // namespace mailroom::test::resend_carrier_test
