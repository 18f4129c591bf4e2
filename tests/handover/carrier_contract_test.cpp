// What every carrier promises, with a real other side each; those of brokers are in tests/broker.

#include "support/carrier_contract.hpp"

#include <csignal>
#include <sstream>

#include "carriers/carriers.hpp"
#include "carriers/smtp/carrier.hpp"
#include "handed_over.hpp"
#include "support/refusing_port.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_relay.hpp"
#include "webhook_process.hpp"

namespace mailroom::test::carrier_contract_test {
namespace {

struct ContractRig {
  TemporaryDirectory directory;
  std::ostringstream text;
  Log log{{}, text};
  Settings settings;

  ContractRig() {
    std::signal(SIGPIPE, SIG_IGN);
    settings.sink.in_flight = 64;
    settings.sink.timeout = std::chrono::seconds(60);
  }
  std::unique_ptr<Carrier> program(const std::string& mode) {
    settings.sink.exec = child_command((directory.path() / "taken").string(), mode);
    return configured_carrier(settings).make({settings, log});
  }
  std::unique_ptr<Carrier> server(const std::string& url) {
    settings.sink.to = url;
    return configured_carrier(settings).make({settings, log});
  }
  static std::unique_ptr<Carrier> relay(const std::string& url) {
    return std::make_unique<SmtpCarrier>(SmtpCarrier::Options{.relays = parse_relay_urls(url)});
  }
};

}  // namespace

TEST_CASE("a program, a web server and a relay that take everything answer each message once") {
  ContractRig rig;
  check_carrier(*rig.program("ok"), Verdict::accepted);
  const WebhookProcess server("ok");
  check_carrier(*rig.server(server.url()), Verdict::accepted);
  const TestRelay relay;
  check_carrier(*rig.relay(relay.url()), Verdict::accepted);
}

TEST_CASE("where nothing can be reached, each message is unavailable or comes back untried") {
  ContractRig rig;
  const RefusingPort closed;
  check_carrier(*rig.program("exit-at-start"), Verdict::unavailable);
  check_carrier(*rig.server(fmt::format("http://127.0.0.1:{}/", closed.port())), Verdict::unavailable);
  check_carrier(*rig.relay(fmt::format("smtp://127.0.0.1:{}", closed.port())), Verdict::unavailable);
}

TEST_CASE("cancel answers everything at once, however long the other side hangs") {
  ContractRig rig;
  check_cancel(*rig.program("hang"));
  const WebhookProcess server("silent");
  check_cancel(*rig.server(server.url()));
  const TestRelay relay(
      {.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::hang))});
  check_cancel(*rig.relay(relay.url()));
}

}  // namespace mailroom::test::carrier_contract_test
