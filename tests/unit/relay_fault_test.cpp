// What is wrong when a relay refuses, by its code and its words.

#include "carriers/smtp/refusal/relay_fault.hpp"

#include <string>
#include <vector>

#include "carriers/smtp/check.hpp"
#include "support/catch.hpp"

namespace mailroom::test::relay_fault_test {

TEST_CASE("the code and words of a refused login say what is wrong with it") {
  struct Row {
    int code;
    std::string text;
    smtp::LoginFault fault;
  };
  using enum smtp::LoginFault;
  const std::vector<Row> rows{
      {535, "5.7.8 Username and Password not accepted", password},
      {535, "Authentication Credentials Invalid", password},
      {535, "5.7.3 Authentication unsuccessful [AM0PR01CA0001]", unsure},
      {534, "5.7.9 Application-specific password required. Learn more", app_password},
      {535, "Login Fail. Please enter your authorization code to login", app_password},
      {534, "5.7.14 Please log in via your web browser and then try again", sign_in},
      {535, "5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant.",
       switched_off},
      {535,
       "5.7.139 Authentication unsuccessful, user is locked by your organization's security defaults policy.",
       switched_off},
      {550, "5.7.30 Basic authentication is not supported for Client Submission.", switched_off},
      {504, "5.7.4 Unrecognized authentication type", mechanism},
      {534, "5.7.9 Authentication mechanism is too weak", mechanism},
      {538, "5.7.11 Encryption required for requested authentication mechanism", encryption},
      {530, "5.7.0 Must issue a STARTTLS command first", encryption},
      {451, "Authentication failed: Maximum credits exceeded", account},
      {535, "5.7.8 account suspended", account},
      {525, "5.7.1 Unauthorized IP address", host},
      {432, "4.3.2 Concurrent connections limit exceeded", crowded},
      {421, "4.7.0 Too many connections", crowded},
      {454, "4.7.0 Temporary authentication failure", later},
      {454, "4.7.0 Too many login attempts, please try again later", later},
      {535, "5.7.0 (#AUTH005) Too many bad auth attempts.", later},
      {421, "4.3.0 later", later},
  };
  for (const auto& row : rows) {
    INFO(row.code << " " << row.text);
    CHECK(static_cast<int>(smtp::fault_of_login(row.code, row.text)) == static_cast<int>(row.fault));
  }
}

TEST_CASE("the code, the step and the words of a refusal say what is wrong") {
  struct Row {
    smtp::SmtpStep step;
    int code;
    std::string text;
    smtp::RelayFault fault;
  };
  using enum smtp::RelayFault;
  const std::vector<Row> rows{
      {smtp::SmtpStep::mail, 421, "4.3.2 shutting down", busy},
      {smtp::SmtpStep::mail, 450, "4.7.1 slow down", busy},
      {smtp::SmtpStep::mail, 452, "4.3.1 Insufficient system storage", busy},
      {smtp::SmtpStep::mail, 450, "4.1.8 <no-reply@app.example>: Sender address rejected: Domain not found",
       sender},
      {smtp::SmtpStep::mail, 553, "5.7.1 not owned by user", sender},
      {smtp::SmtpStep::mail, 554,
       "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using bl.example", refused},
      {smtp::SmtpStep::mail, 530, "5.7.0 Authentication required", wants_login},
      {smtp::SmtpStep::mail, 550, "5.7.57 Client not authenticated to send mail", wants_login},
      {smtp::SmtpStep::mail, 530, "5.7.0 Must issue a STARTTLS command first", wants_tls},
      {smtp::SmtpStep::mail, 451, "5.7.3 STARTTLS is required to send mail", wants_tls},
      {smtp::SmtpStep::connect, 421, "4.7.0 busy", busy},
      {smtp::SmtpStep::connect, 554, "5.7.1 not you", refused},
      {smtp::SmtpStep::hello, 550, "Access denied - Invalid HELO name", refused},
      {smtp::SmtpStep::noop, 450, "later", busy},
  };
  for (const auto& row : rows) {
    INFO(row.code << " " << row.text);
    CHECK(static_cast<int>(smtp::fault_of_refusal(row.step, row.code, row.text)) ==
          static_cast<int>(row.fault));
  }
}

TEST_CASE("a sender is refused for its address, or since the account is suspended") {
  const auto hint = [](int code, const std::string& reply) {
    smtp::RelayCheck check;
    check.fault = smtp::RelayFault::sender;
    check.code = code;
    check.reply = reply;
    return smtp::hint_of(check, smtp::RelayUrl{}, config::RelayPath{});
  };
  CHECK(hint(554, "5.7.1 Account SUSPENDED")
            .starts_with("the provider may have suspended the account: ask it"));
  const auto other = hint(553, "5.7.1 not owned by user");
  CHECK(other.starts_with("set send.from to an address that the relay lets this host or user send from"));
  CHECK(other.ends_with("ask the provider whether the account is suspended"));
}

TEST_CASE("a greeting tells of which relays a power cut loses mails") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"mx.example ESMTP OpenSMTPD", "OpenSMTPD"},
      {"mx.example ESMTP chasquid", "chasquid"},
      {"mx.example ESMTP Postfix (Debian/GNU)", ""},
      {"mx.example ESMTP Exim 4.96 Sat, 28 Nov 2026 12:00:00 +0000", ""},
      {"", ""},
  };
  for (const auto& [greeting, server] : rows) {
    INFO(greeting);
    CHECK(smtp::early_acknowledger(greeting) == server);
  }
}

}  // namespace mailroom::test::relay_fault_test
