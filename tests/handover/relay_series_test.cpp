// Relays of several carriers in one list: which gets a mail, and how the places of endpoints are mapped.

#include "carriers/relay_series.hpp"

#include <fmt/format.h>

#include "carriers/smtp/carrier.hpp"
#include "delivery/dispatcher.hpp"
#include "support/carrier_contract.hpp"
#include "support/refusing_port.hpp"
#include "support/relay_paths.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::relay_series_test {
namespace {

std::unique_ptr<delivery::Carrier> smtp_to(const std::string& urls) {
  return std::make_unique<smtp::SmtpCarrier>(smtp::SmtpCarrier::Options{.relays = relay_urls(urls)});
}

std::unique_ptr<delivery::Carrier> series_of(const std::vector<std::string>& lists) {
  std::vector<std::unique_ptr<delivery::Carrier>> carriers;
  for (const auto& urls : lists)
    carriers.push_back(smtp_to(urls));
  return std::make_unique<carriers::RelaySeries>(std::move(carriers));
}

std::string url_of_closed(const RefusingPort& closed) {
  return fmt::format("smtp://127.0.0.1:{}", closed.port());
}

std::vector<delivery::Dispatched> dispatched(delivery::Dispatcher& dispatcher, int mails) {
  for (int i = 1; i <= mails; ++i)
    dispatcher.submit({.id = i, .batch = 1, .envelope = {.from = "a@mail.example", .to = "b@mail.example"}},
                      SpooledText("Subject: x\r\n\r\nhello\r\n"));
  REQUIRE(dispatcher.wait(steady_now() + std::chrono::seconds(30)));
  return dispatcher.take();
}

}  // namespace

TEST_CASE("a list of relays is split where the kind changes") {
  CHECK(shown_groups("smtp://a , smtps://b:26,SMTP://c") == "smtp: smtp://a smtps://b:26 SMTP://c");
  CHECK(shown_groups("smtp://a,capture:///b,smtp://c,smtp://d") ==
        "smtp: smtp://a | capture: capture:///b | smtp: smtp://c smtp://d");
  CHECK(shown_groups("").empty());
  CHECK(shown_groups("http://a,b") == "smtp: http://a b");
  CHECK(shown_groups("smtp://a,") == "smtp: smtp://a ");
}

TEST_CASE("several carriers promise together what one does") {
  const TestRelay first;
  const TestRelay second;
  check_carrier("relays", *series_of({first.url(), second.url()}), delivery::Verdict::accepted);
  const TestRelay hanging(
      {.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::hang))});
  check_cancel("relays", *series_of({hanging.url(), second.url()}));
}

TEST_CASE("each carrier gets the messages of its own endpoints") {
  const TestRelay a;
  const TestRelay b;
  const TestRelay c;
  const auto series = series_of({a.url() + "," + b.url(), c.url()});
  const std::vector<std::string> names{fmt::format("127.0.0.1:{}", a.port()),
                                       fmt::format("127.0.0.1:{}", b.port()),
                                       fmt::format("127.0.0.1:{}", c.port())};
  CHECK(series->endpoints() == names);
  const ContractMessages messages(3);
  for (std::size_t place = 0; place < names.size(); ++place) {
    auto message = messages.all()[place];
    message.endpoint = place;
    series->limit_connections(place, 1);
    series->submit(std::move(message));
  }
  for (const auto& answer : all_answers(*series))
    CHECK(answer.sink == names.at(static_cast<std::size_t>(answer.id - 1001)));
  CHECK(a.taken().size() == 1);
  CHECK(b.taken().size() == 1);
  CHECK(c.taken().size() == 1);
}

TEST_CASE("a mail goes to the next carrier while the one before is unavailable") {
  const RefusingPort closed;
  const TestRelay second;
  delivery::Dispatcher dispatcher(series_of({url_of_closed(closed), second.url()}), {.in_flight = 4});
  for (const auto& each : dispatched(dispatcher, 20)) {
    CHECK(each.answer.verdict == delivery::Verdict::accepted);
    CHECK(each.answer.sink == fmt::format("127.0.0.1:{}", second.port()));
  }
  CHECK(second.taken().size() == 20);
}

TEST_CASE("a mail that the first relay may have is not given to the next") {
  const TestRelay first(
      {.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::close))});
  const TestRelay second;
  delivery::Dispatcher dispatcher(series_of({first.url(), second.url()}), {.in_flight = 1});
  const auto answers = dispatched(dispatcher, 1);
  REQUIRE(answers.size() == 1);
  CHECK(answers.front().answer.verdict == delivery::Verdict::unknown);
  CHECK(answers.front().may_be_taken);
  CHECK(second.taken().empty());
}

}  // namespace mailroom::test::relay_series_test
