// The places that metrics.listen can name.

#include "config/listen_address.hpp"

#include "support/catch.hpp"

namespace mailroom::test::listen_address_test {

TEST_CASE("addresses to listen at are read, and written the same way") {
  const auto text = [](const std::string& written) {
    const auto address = config::parse_listen_address(written);
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

}  // namespace mailroom::test::listen_address_test
