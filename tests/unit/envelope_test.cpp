#include "carriers/smtp/session/envelope.hpp"

#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace mailroom::test::envelope_test {

using namespace std::string_literals;

TEST_CASE("an address that can be written into a command") {
  const std::string longest = std::string(240, 'a') + "@" + std::string(13, 'b');
  for (const auto& address :
       {"a@b"s, "user+tag@mail.example"s, "o'brien@mail.example"s, "a.b-c_d@xn--bcher-kva.example"s, longest,
        "\"a..b\"@c"s, "\"a b@c\\\"\\\\\"@d"s}) {
    INFO(address);
    CHECK(smtp::is_envelope_address(address, false));
    CHECK(smtp::is_envelope_address(address, true));
  }
  CHECK(smtp::is_envelope_address("ü@mail.example", true));
  CHECK_FALSE(smtp::is_envelope_address("ü@mail.example", false));
  CHECK_FALSE(smtp::is_envelope_address("a@bücher.example", true));
  CHECK_FALSE(smtp::is_envelope_address("\xff@mail.example", true));
  CHECK_FALSE(smtp::is_envelope_address(longest + "b", false));
}

TEST_CASE("an address cannot end a command or leave its brackets") {
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    const bool is_allowed = byte > 0x20 && byte < 0x7F && ""s.append("<>\"\\@").find(c) == std::string::npos;
    INFO(byte);
    for (const auto& address : {""s + c + "a@b", "a"s + c + "b@c"s, "a@b"s + c + "c", "a@b"s + c}) {
      CHECK(smtp::is_envelope_address(address, false) == is_allowed);
    }
  }
  for (const std::string address :
       {"", "@", "a", "a@", "@b", "a@b@c", "\"a@b", "\"\"@b", "\"a\"b\"@c", "\"a\\\"@b", "\"a>\"@b",
        "\"a<\"@b", "\"a\r\"@b", "\"a\"@b c", "\"a\"b@c"}) {
    INFO(address);
    CHECK_FALSE(smtp::is_envelope_address(address, true));
  }
}

TEST_CASE("the lines of a message end in CRLF") {
  for (const auto& message : {""s, "a"s, "a\r\n"s, "\r\n\r\n"s, "\xc3\xbc\t\r\n.\r\n"s})
    CHECK(smtp::is_transmittable(message));
  for (const auto& message :
       {"\n"s, "\r"s, "a\r\r\n"s, "a\n\r\n"s, "a\r\n\n"s, "\n.\r\n"s, "a\r"s, "a\0b\r\n"s})
    CHECK_FALSE(smtp::is_transmittable(message));
}

TEST_CASE("a random message is transmittable exactly if its lines can be joined again") {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string message;
    for (auto size = random() % 8; size > 0; --size)
      message += "ab\r\n."[random() % 5];
    std::string joined = message;
    for (auto at = joined.find("\r\n"); at != std::string::npos; at = joined.find("\r\n"))
      joined.erase(at, 2).insert(at, "#");
    INFO(message);
    CHECK(smtp::is_transmittable(message) == (joined.find_first_of("\r\n") == std::string::npos));
  }
}

}  // namespace mailroom::test::envelope_test
