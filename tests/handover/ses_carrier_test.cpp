// The server that mails are posted to in place of Amazon SES, without a database: what each of its answers
// makes of a mail, and where credentials come from.

#include <cstdlib>
#include <sstream>

#include "base/json.hpp"
#include "carriers/relay_series.hpp"
#include "carriers/ses/carrier.hpp"
#include "carriers/ses/credentials.hpp"
#include "delivery/dispatcher.hpp"
#include "support/carrier_contract.hpp"
#include "support/refusing_port.hpp"
#include "support/relay_paths.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_relay.hpp"
#include "webhook_process.hpp"

namespace mailroom::test::ses_carrier_test {

using namespace std::chrono_literals;

namespace {

struct SesRig {
  TemporaryDirectory directory;
  config::RelayPath path = path_of({});
  mail::ConfiguredMail mail{};

  explicit SesRig(const std::string& endpoint, const std::string& more_relays = {}) {
    path.targets = config::parse_relays("ses://eu-west-1" + more_relays);
    path.options["send.ses_endpoint"] = endpoint;
    path.options["send.ses_credentials_file"] = directory.write(
        "credentials", "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = geheim\n", 0600);
  }
  explicit SesRig(const ServerProcess& server, const std::string& more_relays = {})
      : SesRig(server.url(""), more_relays) {}

  std::unique_ptr<delivery::Carrier> carrier() { return carriers::make_relays(path); }
  std::vector<carriers::SinkFinding> findings() { return carriers::check_relay_list(path, mail); }

  delivery::Answer answer() {
    const auto made = carrier();
    return answer_of(*made, 1);
  }
  static delivery::Answer answer_of(delivery::Carrier& carrier, std::int64_t id) {
    carrier.submit({.id = id,
                    .queue = "mailroom",
                    .tokens = {id},
                    .body = "Subject: x\r\n\r\nhello\r\n",
                    .envelope = {.from = "no-reply@app.example", .to = "ada@example.org"}});
    const auto answers = all_answers(carrier);
    REQUIRE(answers.size() == 1);
    return answers.front();
  }
};

std::vector<nlohmann::json> mails_of(const ServerProcess& server) {
  std::vector<nlohmann::json> mails;
  std::istringstream lines(read_file(server.taken()));
  for (std::string line; std::getline(lines, line);)
    mails.push_back(parse_json(line));
  return mails;
}

ServerProcess error_server(std::vector<std::string> options) {
  return ServerProcess("provider_server.py", "error", options);
}

std::string said(const std::vector<carriers::SinkFinding>& findings) {
  std::string text;
  for (const auto& finding : findings)
    text += finding.reason + " | " + finding.hint + "\n";
  return text;
}

class ChangedVariable {
 public:
  ChangedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ChangedVariable() { unsetenv(name_); }
  ChangedVariable(const ChangedVariable&) = delete;
  ChangedVariable& operator=(const ChangedVariable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("SES keeps the promises of every carrier") {
  const ServerProcess server("provider_server.py", "ok");
  check_carrier("ses", *SesRig(server).carrier(), delivery::Verdict::accepted);
  const RefusingPort closed;
  check_carrier("ses", *SesRig(fmt::format("http://127.0.0.1:{}", closed.port())).carrier(),
                delivery::Verdict::unavailable);
  const ServerProcess silent("provider_server.py", "silent");
  check_cancel("ses", *SesRig(silent).carrier());
}

TEST_CASE("a mail arrives at SES as it is, signed, with its tags, and its id is kept") {
  const ServerProcess server("provider_server.py", "ok");
  SesRig rig(server);
  rig.path.options["send.ses_configuration_set"] = "mailroom";
  const auto answer = rig.answer();
  CHECK(answer.reply == "id-0");
  CHECK(answer.code == 200);
  const auto mails = mails_of(server);
  REQUIRE(mails.size() == 1);
  const auto& mail = mails.front();
  CHECK(mail["path"] == "/v2/email/outbound-emails");
  CHECK(mail["mail"] == "Subject: x\r\n\r\nhello\r\n");
  CHECK(mail["body"]["Destination"]["ToAddresses"] == nlohmann::json::array({"ada@example.org"}));
  CHECK(mail["body"]["ConfigurationSetName"] == "mailroom");
  CHECK(mail["headers"]["host"] == "127.0.0.1:" + server.port());
  const auto signature = mail["headers"]["authorization"].get<std::string>();
  CHECK(signature.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"));
  CHECK(signature.find("SignedHeaders=content-type;host;x-amz-date, ") != std::string::npos);
}

TEST_CASE("an answer that is lost after any byte leaves the mail unknown, and is not asked for again") {
  const ServerProcess server("provider_server.py", "cut");
  SesRig rig(server);
  rig.path.connections = 1;
  const auto carrier = rig.carrier();
  std::int64_t id = 1;
  delivery::Answer answer;
  for (; id < 500; ++id) {
    answer = SesRig::answer_of(*carrier, id);
    if (answer.verdict != delivery::Verdict::unknown) break;
    CHECK_FALSE(answer.reply.empty());
  }
  CHECK(answer.verdict == delivery::Verdict::accepted);
  CHECK(id > 80);
  CHECK(mails_of(server).size() == static_cast<std::size_t>(id));
}

TEST_CASE("a mail is not posted again where a kept connection ends without an answer") {
  const ServerProcess server("provider_server.py", "cut-kept");
  SesRig rig(server);
  const auto carrier = rig.carrier();
  CHECK(SesRig::answer_of(*carrier, 1).verdict == delivery::Verdict::accepted);
  CHECK(SesRig::answer_of(*carrier, 2).verdict == delivery::Verdict::unknown);
  CHECK(SesRig::answer_of(*carrier, 3).verdict == delivery::Verdict::accepted);
  CHECK(mails_of(server).size() == 3);
}

TEST_CASE("an error of SES decides by its name, whatever its status") {
  CHECK(SesRig(error_server({"400", "MessageRejected", "spam"})).answer().verdict ==
        delivery::Verdict::rejected);
  const auto throttled =
      SesRig(error_server({"429", "TooManyRequestsException", "slow down", "Retry-After=2"})).answer();
  CHECK(throttled.verdict == delivery::Verdict::deferred);
  CHECK(throttled.throttled);
  CHECK(throttled.wait == Milliseconds(2000));
  const auto paused = SesRig(error_server({"400", "SendingPausedException", "paused"})).answer();
  CHECK(paused.verdict == delivery::Verdict::unavailable);
  CHECK(paused.reply == "SendingPausedException: paused");
  CHECK(SesRig(error_server({"500", "InternalFailure", "oops"})).answer().verdict ==
        delivery::Verdict::deferred);
}

TEST_CASE("a mail goes to the SMTP relay behind SES while SES takes none, and only then") {
  const TestRelay relay;
  const auto server = error_server({"400", "AccountSuspendedException", "suspended"});
  SesRig rig(server, "," + relay.url());
  rig.path.hello_name = "mail.app.example";
  delivery::Dispatcher dispatcher(rig.carrier(), {.in_flight = 4});
  for (int i = 1; i <= 60; ++i)
    dispatcher.submit(
        {.id = i,
         .batch = 1,
         .envelope = {.from = "a@app.example", .to = "b@mail.example", .author = "a@app.example"}},
        SpooledText("Subject: x\r\n\r\nhello\r\n"));
  REQUIRE(dispatcher.wait(steady_now() + 30s));
  for (const auto& each : dispatcher.take()) {
    CHECK(each.answer.verdict == delivery::Verdict::accepted);
    CHECK(each.answer.sink == fmt::format("127.0.0.1:{}", relay.port()));
  }
  CHECK(relay.taken().size() == 60);
  // Four at once, and of the others, which are like them, those at the powers of two.
  CHECK(mails_of(server).size() <= 4 + 6);
  const ServerProcess working("provider_server.py", "ok");
  CHECK(SesRig::answer_of(*SesRig(working, "," + relay.url()).carrier(), 1).sink ==
        "127.0.0.1:" + working.port());
}

TEST_CASE("the role of an instance or a container signs where no file does, and its session is sent") {
  const ServerProcess server("provider_server.py", "ok");
  SesRig rig(server);
  rig.path.options.erase("send.ses_credentials_file");
  {
    const ChangedVariable metadata("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url("/"));
    CHECK(rig.answer().verdict == delivery::Verdict::accepted);
  }
  {
    const ChangedVariable container("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url("/container"));
    const ChangedVariable token("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod");
    CHECK(rig.answer().verdict == delivery::Verdict::accepted);
  }
  for (const auto& mail : mails_of(server)) {
    CHECK(mail["headers"]["x-amz-security-token"] == "session");
    CHECK(mail["headers"]["authorization"].get<std::string>().find("x-amz-security-token") !=
          std::string::npos);
  }
  CHECK(mails_of(server).size() == 2);
}

TEST_CASE("without credentials no mail leaves, and the record says why and shows none") {
  const RefusingPort closed;
  const ChangedVariable metadata("AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                 fmt::format("http://127.0.0.1:{}", closed.port()));
  const ServerProcess server("provider_server.py", "ok");
  SesRig rig(server);
  const auto path = rig.path.option("send.ses_credentials_file");
  rig.path.options.erase("send.ses_credentials_file");
  const auto answer = rig.answer();
  CHECK(answer.verdict == delivery::Verdict::unavailable);
  CHECK(answer.reply.starts_with("no AWS credentials from the role of this instance: "));
  CHECK(mails_of(server).empty());
  const ChangedVariable elsewhere("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://evil.example/");
  CHECK_THROWS_WITH(rig.carrier(),
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor a service of this host");
  rig.path.options["send.ses_credentials_file"] =
      rig.directory.write("readable", "aws_access_key_id=A\n", 0644);
  CHECK_THROWS_WITH(rig.carrier(),
                    Catch::Matchers::ContainsSubstring("everyone can read the credentials file"));
}

TEST_CASE("a sender that SES cannot take keeps mails waiting") {
  const ServerProcess server("provider_server.py", "ok");
  const auto carrier = SesRig(server).carrier();
  carrier->submit(
      {.id = 1,
       .envelope = {.from = "jö@app.example", .to = "a@b.example", .utf8_sender = "jö@app.example"}});
  CHECK(all_answers(*carrier).at(0).verdict == delivery::Verdict::unavailable);
  CHECK(mails_of(server).empty());
}

TEST_CASE("doctor asks the account and the sender, and says what is wrong") {
  const TemporaryDirectory directory;
  const auto facts =
      directory.write("facts", R"({"account": {"ProductionAccessEnabled": false, "SendingEnabled": true,
                   "SendQuota": {"Max24HourSend": 200, "MaxSendRate": 1, "SentLast24Hours": 3}},
                   "identities": {"app.example": {"VerifiedForSendingStatus": true}}})",
                      0600);
  const ServerProcess server("provider_server.py", "account", {facts});
  SesRig rig(server);
  rig.mail = mail_from("App <no-reply@app.example>");
  const auto fine = said(rig.findings());
  CHECK(fine.find("takes the credentials AKIDEXAMPLE") != std::string::npos);
  CHECK(fine.find("the account is in the sandbox") != std::string::npos);
  CHECK(fine.find("has sent 3 mails of 200") != std::string::npos);
  CHECK(fine.find("app.example is a verified identity") != std::string::npos);
  CHECK(fine.find("geheim") == std::string::npos);
  rig.mail = mail_from("no-reply@other.example");
  CHECK(said(rig.findings()).find("neither no-reply@other.example nor its domain is a verified identity") !=
        std::string::npos);
  CHECK(mails_of(server).empty());
}

TEST_CASE("doctor tells an ended role, a wrong clock and a wrong key apart") {
  const auto of = [](const std::vector<std::string>& options) {
    return said(SesRig(error_server(options)).findings());
  };
  CHECK(of({"403", "ExpiredTokenException", "expired"}).find("the session of the role has ended") !=
        std::string::npos);
  CHECK(of({"403", "UnrecognizedClientException", "invalid"}).find("check send.ses_credentials_file") !=
        std::string::npos);
  CHECK(of({"403", "AccessDeniedException", "no"}).find("add ses:GetAccount to the policy") !=
        std::string::npos);
  for (const auto& [options, expected] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"429", "TooManyRequestsException", "slow down"}, "was asked too often"},
           {{"400", "ThrottlingException", "Rate exceeded"}, "was asked too often"},
           {{"400", "AccountSuspendedException", "no"}, "has suspended the account"},
           {{"400", "SendingPausedException", "no"}, "has suspended the account"},
           {{"500", "InternalServiceErrorException", "oh"}, "has a fault of its own, 500"},
           {{"503", "", ""}, "has a fault of its own, 503"},
           {{"404", "NotFoundException", "no"}, "does not answer as Amazon SES, 404"}}) {
    INFO(options[0] << " " << options[1]);
    CHECK(of(options).find(expected) != std::string::npos);
    CHECK(of(options).find("credentials_file") == std::string::npos);
    CHECK(of(options).find("refuses the credentials") == std::string::npos);
  }
  const RefusingPort closed;
  SesRig rig(fmt::format("http://127.0.0.1:{}", closed.port()));
  CHECK(said(rig.findings()).find("cannot be reached") != std::string::npos);
}

}  // namespace mailroom::test::ses_carrier_test
