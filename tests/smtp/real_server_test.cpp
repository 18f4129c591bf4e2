// A mail to an SMTP server that is not part of the tests.

#include <fmt/format.h>

#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_mail.hpp"

namespace mailroom::test::real_server_test {

TEST_CASE("aiosmtpd takes mails over one connection and shows what it got") {
  const TemporaryDirectory directory;
  const std::string output = directory.path() / "output";
  int port = 0;
  { port = TestRelay().port(); }
  Subprocess server({"/usr/bin/python3", "-u", "-m", "aiosmtpd", "-n", "-c", "aiosmtpd.handlers.Debugging",
                     "stdout", "-l", fmt::format("127.0.0.1:{}", port)},
                    {}, output, output);
  smtp::RelaySession relay(smtp::parse_relay_url(fmt::format("smtp://127.0.0.1:{}", port)), {});
  delivery::Answer delivery;
  const auto first = [&] {
    delivery = relay.deliver(mail_to("first@mail.example"));
    return delivery.verdict == delivery::Verdict::accepted;
  };
  INFO(read_file(output));
  REQUIRE(eventually(first));
  CHECK(text_of(delivery) == "accepted, counted, 250: OK");
  CHECK(relay.deliver(mail_to("second@mail.example")).verdict == delivery::Verdict::accepted);
  // It unstuffs the dots.
  CHECK(eventually(
      [&] { return read_file(output).find("\n.\n..two dots\nlast line\n") != std::string::npos; }));
}

}  // namespace mailroom::test::real_server_test
