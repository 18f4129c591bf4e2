#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/secret_file.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "support/catch.hpp"
#include "support/relay_paths.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::relay_url_test {
namespace {

/// Message and hint of the error that `attempt` throws.
template <typename Attempt>
std::string refusal_of(Attempt attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

std::string refusal_of_url(const std::string& text) {
  return refusal_of([&] { relay_urls(text); });
}

}  // namespace

TEST_CASE("relays are read from URLs") {
  const std::vector<std::pair<std::string, std::vector<smtp::RelayUrl>>> rows{
      {"smtp://mail.example", {{{"mail.example", 25}, false, ""}}},
      {"SMTP://mail.example", {{{"mail.example", 25}, false, ""}}},
      {"smtps://mail.example", {{{"mail.example", 465}, true, ""}}},
      {"smtp://alice@mail.example:587", {{{"mail.example", 587}, false, "alice"}}},
      {"smtp://alice%40mail.example@relay.example", {{{"relay.example", 25}, false, "alice@mail.example"}}},
      {"smtps://a%2Fb%25%c3%bc@relay.example:1", {{{"relay.example", 1}, true, "a/b%ü"}}},
      {"smtp://192.0.2.1:65535", {{{"192.0.2.1", 65535}, false, ""}}},
      {"smtp://[2001:db8::1]", {{{"2001:db8::1", 25}, false, ""}}},
      {"smtp://alice@[::1]:2525", {{{"::1", 2525}, false, "alice"}}},
      {"smtp://a_b.c-d.example", {{{"a_b.c-d.example", 25}, false, ""}}},
      {"smtp://a , smtps://b:26,smtp://c",
       {{{"a", 25}, false, ""}, {{"b", 26}, true, ""}, {{"c", 25}, false, ""}}},
  };
  for (const auto& [text, relays] : rows) {
    INFO(text);
    CHECK(relay_urls(text) == relays);
  }
}

TEST_CASE("a malformed relay URL is refused") {
  const std::string form = " | write it as smtp://host, smtp://user@host:587 or smtps://user@host";
  const std::vector<std::pair<std::string, std::string>> rows{
      {" ", "a relay is missing" + form},
      {"smtp://a,,smtp://b", "a relay is missing" + form},
      {"smtp://a,", "a relay is missing" + form},
      {"mail.example", "the relay 'mail.example' does not begin with smtp:// or smtps://" + form},
      {"http://a", "the relay 'http://a' does not begin with smtp:// or smtps://" + form},
      {"smtp://", "the relay 'smtp://' names no host" + form},
      {"smtp://:25", "the relay 'smtp://:25' names no host" + form},
      {"smtp://alice@", "the relay 'smtp://***@' names no host" + form},
      {"smtp://a:0", "the relay 'smtp://a:0' has no port between 1 and 65535 after the colon" + form},
      {"smtp://a:65536", "the relay 'smtp://a:65536' has no port between 1 and 65535 after the colon" + form},
      {"smtp://a:", "the relay 'smtp://a:' has no port between 1 and 65535 after the colon" + form},
      {"smtp://a:+25", "the relay 'smtp://a:***' has no port between 1 and 65535 after the colon" + form},
      {"smtp://a/", "the relay 'smtp://a/' continues after its host and port" + form},
      {"smtp://a?b", "the relay 'smtp://a?b' continues after its host and port" + form},
      {"smtp://[::1]x", "the relay 'smtp://[::1]x' continues after its host and port" + form},
      {"smtp://[::1", "the relay 'smtp://[:***' has no IPv6 address in its brackets" + form},
      {"smtp://[1.2.3.4]", "the relay 'smtp://[1.2.3.4]' has no IPv6 address in its brackets" + form},
      {"smtp://[fe80::1%eth0]", "the relay 'smtp://[fe80:***' has no IPv6 address in its brackets" + form},
      {"smtp://@a",
       "the relay 'smtp://***@a' has no valid user before the @ | write special characters as %XX: "
       "user%40example.org"},
      {"smtp://a%0ab@c",
       "the relay 'smtp://***@c' has no valid user before the @ | write special characters as %XX: "
       "user%40example.org"},
      {"smtp://a%4@c",
       "the relay 'smtp://***@c' has no valid user before the @ | write special characters as %XX: "
       "user%40example.org"},
      {"smtp://a@b@c", "the relay 'smtp://***@c' has more than one @ | write an @ in the user as %40"},
  };
  for (const auto& [text, refusal] : rows)
    CHECK(refusal_of_url(text) == refusal);
  // libcurl would read the last three as addresses.
  for (const std::string host : {"a b", "a..b", "-a", "a-", ".a", "a\nb", "127.1", "0x7f000001", "10"}) {
    CHECK(refusal_of_url("smtp://" + host) ==
          "the relay 'smtp://" + (host == "a\nb" ? "a?b" : host) +
              "' has a host that is neither a name nor an address | write an IPv6 address in brackets: "
              "smtp://[::1]:25");
  }
}

TEST_CASE("a NUL does not hide the rest of a host") {
  using namespace std::string_literals;
  for (const auto& host : {"[::1\0x]"s, "127.0.0.1\0x"s, "a\0"s})
    CHECK(refusal_of_url("smtp://" + host) != "no error");
}

TEST_CASE("a usual mistake in a relay URL is told what to write instead") {
  CHECK(
      refusal_of_url("smtp://relay.example.") ==
      "the relay 'smtp://relay.example.' has a host that ends in a dot | write it without the dot at its end: "
      "relay.example");
  CHECK(
      refusal_of_url("smtp://bücher.example:587") ==
      "the relay 'smtp://bücher.example:587' has an international host name | write the name in ASCII, as this prints "
      "it: python3 -c \"print('bücher.example'.encode('idna').decode())\"");
  CHECK(
      refusal_of_url("smtp://bücher$(x).example") ==
      "the relay 'smtp://bücher$(x).example' has an international host name | write the name in ASCII, its labels as "
      "xn--…");
  CHECK(
      refusal_of_url("smtp://alice@relay.example:465") ==
      "the relay 'smtp://***@relay.example:465' has port 465, which speaks TLS from the first byte | write it with "
      "smtps:// in place of smtp://");
  CHECK(smtp::parse_relay_url("smtps://relay.example:465").implicit_tls);
}

TEST_CASE("a password in a relay URL is refused and not shown") {
  CHECK(
      refusal_of_url("smtp://alice:pa55word@mail.example") ==
      "the relay 'smtp://***@mail.example' contains a password | write the password into a file that only this "
      "user can read, and name the file in send.password_file");
  for (const std::string text :
       {"smtp://alice:@mail.example", "smtp://alice:pa55word@", "smtp://alice:pa55word", "alice:pa55word@a",
        "smtp://alice:pa55word@b@c", "smtp://alice:pa55word/@a", "smtp://alice:pa55word,@a",
        "http://a:pa55word@b", "smtp://alice:pa55word#1@a", "smtp://alice:pa55word],@a",
        "smtp://a@:pa55word,@b", "b,alice:pa55word://@a", "smtp://[alice:pa55word],@a",
        "smtp://b, smtp://alice:pa55word@c:d"}) {
    const auto refusal = refusal_of_url(text);
    CHECK(refusal != "no error");
    CHECK(refusal.find("pa55word") == std::string::npos);
  }
}

TEST_CASE("a URL of random characters is read or refused") {
  constexpr std::string_view characters = "asmtp:/[]@%4,.:-_1 ";
  std::mt19937 random(4711);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = "smtp://";
    for (auto size = random() % 9; size > 0; --size)
      text += characters[random() % characters.size()];
    try {
      for (const auto& relay : relay_urls(text)) {
        CHECK_FALSE(relay.host.empty());
        CHECK(relay.port > 0);
        const auto again = std::string(relay.implicit_tls ? "smtps://" : "smtp://") + relay.address();
        CHECK(smtp::parse_relay_url(again).host == relay.host);
      }
      ++read;
    } catch (const Error& error) {
      CHECK_FALSE(error.hint().empty());
    }
  }
  CHECK(read > 500);
}

TEST_CASE("only a relay on this host needs no TLS") {
  for (const std::string host : {"localhost", "LocalHost", "127.0.0.1", "127.255.0.9", "[::1]", "[0:0::1]"}) {
    INFO(host);
    CHECK(smtp::parse_relay_url("smtp://" + host).is_loopback());
  }
  for (const std::string host : {"localhost.example", "a.localhost", "128.0.0.1", "126.0.0.1", "[::2]",
                                 "[::ffff:127.0.0.1]", "local"}) {
    INFO(host);
    CHECK_FALSE(smtp::parse_relay_url("smtp://" + host).is_loopback());
  }
}

TEST_CASE("an address shows host and port") {
  CHECK(smtp::parse_relay_url("smtp://a@b.example").address() == "b.example:25");
  CHECK(smtp::parse_relay_url("smtps://[::1]").address() == "[::1]:465");
}

TEST_CASE("a password file holds one line") {
  const test::TemporaryDirectory directory;
  CHECK(read_password_file(directory.write("lf", "open sesame ü\n"), false, "send.password_file") ==
        "open sesame ü");
  CHECK(read_password_file(directory.write("none", "open"), false, "send.password_file") == "open");
  CHECK(read_password_file(directory.write("group", "open\r\n", 0640), false, "send.password_file") ==
        "open");
  const std::string content = " | it must have one line, the password";
  const auto refusal = [&](const std::string& text, unsigned mode = 0600) {
    const auto path = directory.write("refused", text, mode);
    auto message = refusal_of([&] { read_password_file(path, false, "send.password_file"); });
    const auto at = message.find(path);
    REQUIRE(at != std::string::npos);
    return message.replace(at, path.size(), "FILE");
  };
  CHECK(refusal("") == "the password file FILE is empty" + content);
  CHECK(refusal("\n") == "the password file FILE is empty" + content);
  CHECK(refusal("a\nb\n") ==
        "the password in the file FILE has control characters or is not UTF-8" + content);
  CHECK(refusal(std::string("a\0b", 3)) ==
        "the password in the file FILE has control characters or is not UTF-8" + content);
  CHECK(refusal("\xff") == "the password in the file FILE has control characters or is not UTF-8" + content);
  CHECK(refusal(std::string(5000, 'a')) == "the password file FILE contains more than a password" + content);
  CHECK(
      refusal("open", 0644).starts_with("everyone can read the password file FILE (mode 0644) | chmod 640 "));
  CHECK(refusal("open", 0620).starts_with("others can replace the password in the file FILE (mode 0620)"));
  CHECK(refusal_of([] { read_password_file("/nonexistent/password", false, "send.password_file"); }) ==
        "cannot read the password file /nonexistent/password: No such file or directory | it is set by "
        "send.password_file, and this user must be able to read it");
  CHECK(read_password_file(directory.write("open", "open", 0644), true, "send.password_file") == "open");
}

}  // namespace mailroom::test::relay_url_test
