// What every carrier promises, with a real other side each. Those of providers are beside their other tests,
// and those of brokers in tests/broker.

#include "support/carrier_contract.hpp"

#include <csignal>
#include <sstream>

#include "carriers/capture/carrier.hpp"
#include "carriers/carriers.hpp"
#include "carriers/relay_series.hpp"
#include "carriers/smtp/carrier.hpp"
#include "handed_over.hpp"
#include "support/refusing_port.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_relay.hpp"
#include "webhook_process.hpp"

namespace mailroom::test::carrier_contract_test {
namespace {

struct ContractRig {
  TemporaryDirectory directory;
  std::ostringstream text;
  Log log{{}, text};
  config::Settings settings;

  ContractRig() {
    std::signal(SIGPIPE, SIG_IGN);
    settings.sink.in_flight = 64;
    settings.sink.timeout = std::chrono::seconds(60);
  }
  std::unique_ptr<delivery::Carrier> program(const std::string& mode) {
    settings.sink.exec = child_command((directory.path() / "taken").string(), mode);
    return carriers::configured_carrier(settings).make({settings, log});
  }
  std::unique_ptr<delivery::Carrier> server(const std::string& url) {
    settings.sink.to = url;
    return carriers::configured_carrier(settings).make({settings, log});
  }
  /// Keeps mails in `maildir` of the directory.
  std::unique_ptr<delivery::Carrier> capture() {
    config::RelayPath path;
    path.targets = {capture::capture_relay((directory.path() / "mail, dir").string())};
    return carriers::make_relays(path);
  }
  static std::unique_ptr<delivery::Carrier> relay(const std::string& url) {
    return std::make_unique<smtp::SmtpCarrier>(
        smtp::SmtpCarrier::Options{.relays = {smtp::parse_relay_url(url)}});
  }
};

}  // namespace

TEST_CASE("a program, a web server, a relay and a maildir that take everything answer each message once") {
  ContractRig rig;
  check_carrier("exec", *rig.program("ok"), delivery::Verdict::accepted);
  const WebhookProcess server("ok");
  check_carrier("http", *rig.server(server.url()), delivery::Verdict::accepted);
  const TestRelay relay;
  check_carrier("smtp", *rig.relay(relay.url()), delivery::Verdict::accepted);
  check_carrier("capture", *rig.capture(), delivery::Verdict::accepted);
}

TEST_CASE("a captured mail has its bytes below its envelope, and is in new alone") {
  ContractRig rig;
  const auto carrier = rig.capture();
  const std::string body = "Subject: x\r\n\r\n.\r\ntext\r\n";
  delivery::Message message{.id = 1};
  message.body = body;
  message.envelope = {.from = "", .to = "ada@example.org"};
  carrier->submit(message);
  const auto answers = all_answers(*carrier);
  const auto maildir = rig.directory.path() / "mail, dir";
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].sink == "capture");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(maildir / "new"))
    files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  CHECK(answers[0].reply == "kept as " + files[0].string());
  CHECK(read_file(files[0].string()) == "Return-Path: <>\r\nDelivered-To: ada@example.org\r\n" + body);
  CHECK(std::filesystem::is_empty(maildir / "tmp"));
  CHECK(std::filesystem::status(maildir / "new").permissions() == std::filesystem::perms::owner_all);
}

TEST_CASE("where nothing can be reached, each message is unavailable or comes back untried") {
  ContractRig rig;
  const RefusingPort closed;
  check_carrier("exec", *rig.program("exit-at-start"), delivery::Verdict::unavailable);
  check_carrier("http", *rig.server(fmt::format("http://127.0.0.1:{}/", closed.port())),
                delivery::Verdict::unavailable);
  check_carrier("smtp", *rig.relay(fmt::format("smtp://127.0.0.1:{}", closed.port())),
                delivery::Verdict::unavailable);
  const auto capture = rig.capture();
  std::filesystem::remove_all(rig.directory.path() / "mail, dir");
  check_carrier("capture", *capture, delivery::Verdict::unavailable);
}

TEST_CASE("cancel answers everything at once, however long the receiver hangs") {
  ContractRig rig;
  check_cancel("exec", *rig.program("hang"));
  const WebhookProcess server("silent");
  check_cancel("http", *rig.server(server.url()));
  const TestRelay relay(
      {.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::hang))});
  check_cancel("smtp", *rig.relay(relay.url()));
  check_cancel("capture", *rig.capture());
}

}  // namespace mailroom::test::carrier_contract_test
