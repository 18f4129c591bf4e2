// What a login says, and where its access token comes from.

#include "base/error.hpp"
#include "carriers/smtp/login/mechanisms.hpp"
#include "carriers/smtp/relay/access_token.hpp"
#include "carriers/smtp/relay/configured_relays.hpp"
#include "support/catch.hpp"

namespace mailroom::test::login_words_test {
namespace {

using enum smtp::AuthMechanism;

constexpr TimePoint start{std::chrono::hours(1)};

const smtp::Credentials with_password{
    .user = "tim", .secret = "tanstaaftanstaaf", .host = "relay.example", .port = 587};
const smtp::Credentials with_token{
    .user = "a,b=c@x.example", .secret = "tok", .is_token = true, .host = "relay.example", .port = 587};

std::string problem_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("the mechanisms that fit are tried in an order of our own") {
  using Mechanisms = std::vector<smtp::AuthMechanism>;
  CHECK(smtp::mechanisms_to_try("CRAM-MD5 GSSAPI login Plain NTLM", false) ==
        Mechanisms{plain, login, cram_md5});
  CHECK(smtp::mechanisms_to_try("XOAUTH2 PLAIN OAUTHBEARER", true) == Mechanisms{oauthbearer, xoauth2});
  CHECK(smtp::mechanisms_to_try("XOAUTH2 GSSAPI PLAIN-CLIENTTOKEN", false).empty());
  CHECK(smtp::mechanisms_to_try("", false).empty());
  CHECK(
      smtp::no_mechanism_text("PLAIN LOGIN", true) ==
      "the relay offers AUTH PLAIN LOGIN only, and mailroom knows OAUTHBEARER, XOAUTH2; with a password PLAIN, LOGIN, "
      "CRAM-MD5");
}

TEST_CASE("each mechanism has its words") {
  CHECK(smtp::auth_command(plain, with_password) == "AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm");
  CHECK(smtp::auth_answer(plain, 0, "", with_password) == "AHRpbQB0YW5zdGFhZnRhbnN0YWFm");
  CHECK(smtp::auth_command(login, with_password) == "AUTH LOGIN");
  CHECK(smtp::auth_answer(login, 0, "VXNlcm5hbWU6", with_password) == "dGlt");
  CHECK(smtp::auth_answer(login, 1, "UGFzc3dvcmQ6", with_password) == "dGFuc3RhYWZ0YW5zdGFhZg==");
  CHECK(smtp::auth_answer(login, 2, "", with_password) == std::nullopt);
  // The example of RFC 2195.
  CHECK(smtp::auth_command(cram_md5, with_password) == "AUTH CRAM-MD5");
  CHECK(smtp::auth_answer(cram_md5, 0, "PDE4OTYuNjk3MTcwOTUyQHBvc3RvZmZpY2UucmVzdG9uLm1jaS5uZXQ+",
                          with_password) == "dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw");
  // user=…^Aauth=Bearer tok^A^A
  CHECK(smtp::auth_command(xoauth2, with_token) ==
        "AUTH XOAUTH2 dXNlcj1hLGI9Y0B4LmV4YW1wbGUBYXV0aD1CZWFyZXIgdG9rAQE=");
  CHECK(smtp::auth_answer(xoauth2, 0, "e30=", with_token) == "");
  // n,a=a=2Cb=3Dc@x.example,^Ahost=relay.example^Aport=587^Aauth=Bearer tok^A^A
  CHECK(
      smtp::auth_command(oauthbearer, with_token) ==
      "AUTH OAUTHBEARER bixhPWE9MkNiPTNEY0B4LmV4YW1wbGUsAWhvc3Q9cmVsYXkuZXhhbXBsZQFwb3J0PTU4NwFhdXRoPUJlYXJlciB0b2sBAQ==");
  CHECK(smtp::auth_answer(oauthbearer, 0, "e30=", with_token) == "AQ==");
  CHECK(smtp::auth_answer(oauthbearer, 1, "", with_token) == std::nullopt);
}

TEST_CASE("an access token is a line, or what a token server answers") {
  CHECK(smtp::parse_access_token("abc.d-e\n", "it").text == "abc.d-e");
  const auto token = smtp::parse_access_token(
      R"({"access_token": "abc", "expires_in": 3599, "token_type": "Bearer"})", "it");
  CHECK(token.text == "abc");
  CHECK(token.lives == std::chrono::seconds(3599));
  CHECK_FALSE(smtp::parse_access_token(R"({"access_token": "abc"})", "it").lives);
  CHECK(problem_of([] { smtp::parse_access_token("\n", "it"); }) == "it gives no token");
  CHECK(problem_of([] { smtp::parse_access_token("{\"access", "it"); }) ==
        "it gives JSON that does not parse");
  CHECK(problem_of([] {
          smtp::parse_access_token(
              R"({"error": "invalid_client", "error_description": "AADSTS7000215: wrong"})", "it");
        }) == "it gives no token: invalid_client: AADSTS7000215: wrong");
  for (const auto* text : {"{\"error\": 7}", "{\"access_token\": 7}", "a b", "a\nb"})
    CHECK(problem_of([&] { smtp::parse_access_token(text, "it"); }) ==
          "it gives something else than a token");
}

TEST_CASE("a token is kept until a minute before its end, or until it is refused") {
  int fetched = 0;
  smtp::TokenSource source(
      [&] {
        return smtp::AccessToken{.text = std::to_string(++fetched), .lives = std::chrono::seconds(600)};
      },
      true);
  CHECK(source.token(start) == "1");
  CHECK(source.token(start + std::chrono::seconds(539)) == "1");
  CHECK(source.token(start + std::chrono::seconds(540)) == "2");
  // A new one that is refused is wrong; a kept one may have ended.
  CHECK_FALSE(source.was_kept("2"));
  CHECK(source.token(start + std::chrono::seconds(541)) == "3");
  CHECK(source.token(start + std::chrono::seconds(542)) == "3");
  CHECK(source.was_kept("3"));
  CHECK(source.token(start + std::chrono::seconds(543)) == "4");
  smtp::TokenSource file([&] { return smtp::AccessToken{.text = std::to_string(++fetched)}; }, false);
  CHECK(file.token(start) == "5");
  CHECK(file.token(start) == "6");
  CHECK_FALSE(file.was_kept("6"));
}

TEST_CASE("the program that prints a token runs in a shell, without our secrets") {
  constexpr Milliseconds patience{10'000};
  setenv("MAILROOM_SECRET_KEY", "very secret", 1);
  CHECK(smtp::output_of_command("printf '%s' \"tok$MAILROOM_SECRET_KEY\"", patience) == "tok");
  unsetenv("MAILROOM_SECRET_KEY");
  setenv("CREDENTIALS_DIRECTORY", "/run/credentials/mailroom", 1);
  CHECK(smtp::output_of_command("printf '%s' \"tok$CREDENTIALS_DIRECTORY\"", patience) == "tok");
  unsetenv("CREDENTIALS_DIRECTORY");
  CHECK(problem_of([&] { smtp::output_of_command("exit 3", patience); }) ==
        "the program of send.token_command exited with status 3");
  CHECK(problem_of([&] { smtp::output_of_command("kill -TERM $$", patience); }) ==
        "the program of send.token_command was killed by signal 15");
  CHECK(problem_of([&] { smtp::output_of_command("sleep 60 & wait", Milliseconds(50)); }) ==
        "the program of send.token_command has not ended within 50ms");
}

TEST_CASE("what the program of a token says of its failure is kept, without secrets") {
  constexpr Milliseconds patience{10'000};
  const auto failure = [&](const std::string& command) {
    return problem_of([&] { smtp::output_of_command(command, patience); });
  };
  const std::string program = "the program of send.token_command ";
  CHECK(failure("echo first >&2; echo 'curl: (22) error: 401' >&2; exit 22") ==
        program + "exited with status 22: curl: (22) error: 401");
  CHECK(
      failure(
          R"(echo '{"error":"invalid_client","error_description":"AADSTS7000215"}'; echo no >&2; exit 1)") ==
      program + "exited with status 1: invalid_client: AADSTS7000215");
  CHECK(failure("echo no account >&2") == program + "prints nothing: no account");
  CHECK(failure("echo '+ curl -d client_secret=s3cr3t&scope=mail' >&2; exit 1") ==
        program + "exited with status 1: + curl -d client_secret=***&scope=mail");
  CHECK(failure("echo '\"refresh_token\": \"0.AXoA1234567890abcdef\"' >&2; exit 1") ==
        program + "exited with status 1: \"refresh_token\": \"***\"");
  CHECK(failure("echo 'Authorization: Bearer abc.def eyJhbGci.eyJzdWIi.c2ln' >&2; exit 1") ==
        program + "exited with status 1: Authorization: Bearer *** ***");
  CHECK(failure("head -c 200000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2; exit 1") ==
        program + "exited with status 1: last");
}

TEST_CASE("the name in EHLO is a full name, or an address in brackets") {
  const auto chosen = [](const std::string& name, const std::string& canonical,
                         std::vector<std::string> addresses) {
    return smtp::choose_hello_name({.name = name, .canonical = canonical, .addresses = std::move(addresses)});
  };
  CHECK(chosen("app1.example.com", "other.example", {"192.0.2.1"}) == "app1.example.com");
  CHECK(chosen("app1", "app1.example.com", {"192.0.2.1"}) == "app1.example.com");
  CHECK(chosen("app1", "app1", {"192.0.2.1", "2001:db8::1"}) == "[192.0.2.1]");
  CHECK(chosen("localhost", "localhost.localdomain", {"2001:db8::1"}) == "[IPv6:2001:db8::1]");
  CHECK(chosen("a b.example", "", {}) == "[127.0.0.1]");
  for (const std::string name : {"mail.example", "app1", "[192.0.2.1]", "[IPv6:2001:db8::1]"})
    CHECK(smtp::is_hello_name(name));
  for (const std::string name :
       {"", "mail example", "192.0.2.1", "[]", "[mail.example]", "[2001:db8::1]", "a\r\nb"})
    CHECK_FALSE(smtp::is_hello_name(name));
  CHECK(smtp::is_hello_name(smtp::own_hello_name()));
}

}  // namespace mailroom::test::login_words_test
