// What mailing by Amazon SES decides by values alone: endpoints, signatures, credentials, answers, the
// account.

#include <atomic>
#include <fmt/format.h>

#include "base/error.hpp"
#include "carriers/relay_series.hpp"
#include "carriers/ses/answer.hpp"
#include "carriers/ses/carrier.hpp"
#include "carriers/ses/credentials.hpp"
#include "carriers/ses/message_id.hpp"
#include "config/key_table.hpp"
#include "support/catch.hpp"
#include "support/relay_paths.hpp"

namespace mailroom::test::ses_test {

using namespace std::chrono_literals;

namespace {

config::RelayPath path_to(const std::string& relay, const std::string& endpoint = {}) {
  auto path = path_of(relay);
  path.options["send.ses_endpoint"] = endpoint;
  return path;
}

ses::SesEndpoint endpoint_of(const std::string& relay, const std::string& endpoint = {}) {
  return ses::parse_ses_endpoint(path_to(relay, endpoint));
}

constexpr std::int64_t noon = 1795608000;  // Wed, 25 Nov 2026 12:00:00 GMT

http::HttpOutcome answered(int status, const std::string& name, const std::string& message) {
  http::HttpOutcome outcome{.end = http::HttpEnd::answered};
  outcome.response.status = status;
  outcome.response.headers["x-amzn-errortype"] = name;
  outcome.response.body = fmt::format(R"({{"message":"{}"}})", message);
  return outcome;
}

struct Row {
  int status;
  std::string name;
  std::string message;
  delivery::Verdict verdict;
  bool throttled = false;
};

}  // namespace

TEST_CASE("a region names the endpoint of SES, unless the settings do") {
  const auto usual = endpoint_of("ses://eu-west-1");
  CHECK(usual.region == "eu-west-1");
  CHECK(usual.host == "email.eu-west-1.amazonaws.com");
  CHECK(usual.http.url == "https://email.eu-west-1.amazonaws.com");
  CHECK(usual.http.name == "email.eu-west-1.amazonaws.com:443");
  CHECK(endpoint_of(" SES://us-gov-west-1").host == "email.us-gov-west-1.amazonaws.com");
  CHECK(endpoint_of("ses://cn-north-1").host == "email.cn-north-1.amazonaws.com.cn");
  const auto own = endpoint_of("ses://eu-west-1", "http://127.0.0.1:8005/");
  CHECK(own.host == "127.0.0.1:8005");
  CHECK(own.http.url == "http://127.0.0.1:8005");
  CHECK(own.region == "eu-west-1");
  auto path = path_to("ses://eu-west-1");
  path.profile = "acme";
  CHECK(ses::parse_ses_endpoint(path).http.name == "email.eu-west-1.amazonaws.com:443 (acme)");
}

TEST_CASE("what is no region is refused, and shows no password") {
  for (const auto* relay :
       {"ses://eu-west", "ses://ireland", "ses://eu-west-1.evil.example", "ses://eu_west-1",
        "ses://eu-west-1:444", "ses://key@eu-west-1", "ses://eu-west-1/path", "ses://"}) {
    INFO(relay);
    CHECK_THROWS_AS(endpoint_of(relay), Error);
  }
  try {
    endpoint_of("ses://AKIA:geheim@eu-west-1");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("geheim") == std::string::npos);
  }
  CHECK_THROWS_WITH(endpoint_of("ses://eu-west-1", "http://mail.example"),
                    "the URL of send.ses_endpoint is http:// to another host");
  CHECK_THROWS_AS(endpoint_of("ses://eu-west-1", "https://mail.example/v2"), Error);
}

TEST_CASE("each relay of SES is a carrier of its own beside those of SMTP") {
  CHECK(shown_groups("ses://eu-west-1, ses://us-east-1,smtp://u@a:587,smtps://b") ==
        "ses: ses://eu-west-1 | ses: ses://us-east-1 | smtp: smtp://u@a:587 smtps://b");
}

TEST_CASE("a request is signed as AWS's own example is") {
  // get-vanilla of the test suite of Signature Version 4.
  const ses::AwsCredentials credentials{.key_id = "AKIDEXAMPLE",
                                        .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
  const auto lines =
      ses::signed_headers({.method = "GET", .host = "example.amazonaws.com", .path = "/"}, credentials,
                          {.region = "us-east-1", .service = "service"}, 1440938160);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "host: example.amazonaws.com");
  CHECK(lines[1] == "x-amz-date: 20150830T123600Z");
  CHECK(lines[2] ==
        "authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST_CASE("a mail is asked for with its bytes, its recipient and its tags") {
  delivery::Message message;
  message.queue = "pä queue";
  message.tokens = {813};
  message.body = "Subject: x\r\n\r\nhello\r\n";
  message.envelope = {.from = "no-reply@app.example", .to = "ada@example.org"};
  CHECK(ses::ses_body(message, "mailroom") ==
        R"({"Content":{"Raw":{"Data":"U3ViamVjdDogeA0KDQpoZWxsbw0K"}},)"
        R"("Destination":{"ToAddresses":["ada@example.org"]},"ConfigurationSetName":"mailroom",)"
        R"("EmailTags":[{"Name":"queue","Value":"p___queue"},{"Name":"token","Value":"813"}]})");
  message.queue.clear();
  message.tokens.clear();
  CHECK(ses::ses_body(message, "").find("EmailTags") == std::string::npos);
}

TEST_CASE("credentials are read from both forms of a file") {
  const auto plain = ses::parse_credentials_file(
      "aws_access_key_id=AKIDEXAMPLE\naws_secret_access_key = abc/def+1\naws_session_token=t==\n", "x");
  CHECK(plain.key_id == "AKIDEXAMPLE");
  CHECK(plain.secret == "abc/def+1");
  CHECK(plain.session_token == "t==");
  const auto shared = ses::parse_credentials_file(
      "# keys\n[other]\naws_access_key_id = WRONG\naws_secret_access_key = wrong\n\n[default]\r\n"
      "aws_access_key_id = RIGHT\r\naws_secret_access_key = right\r\n[last]\naws_session_token = wrong\n",
      "x");
  CHECK(shared.key_id == "RIGHT");
  CHECK(shared.secret == "right");
  CHECK(shared.session_token.empty());
  for (const auto* wrong :
       {"", "geheim", "aws_access_key_id=A\n", "[other]\naws_access_key_id=A\naws_secret_access_key=B",
        "aws_access_key_id=A B\naws_secret_access_key=geheim",
        "aws_access_key_id=A\naws_secret_access_key=\x01"}) {
    INFO(wrong);
    CHECK_THROWS_WITH(ses::parse_credentials_file(wrong, "the credentials file f"),
                      "the credentials file f has no AWS credentials");
  }
}

TEST_CASE("credentials of a role have an end") {
  const auto role = ses::parse_role_credentials(
      R"({"Code":"Success","AccessKeyId":"ASIA","SecretAccessKey":"s","Token":"t","Expiration":"2026-11-25T12:00:00Z"})",
      "x");
  CHECK(role.key_id == "ASIA");
  CHECK(role.session_token == "t");
  REQUIRE(role.ends);
  CHECK(in_seconds(*role.ends) == noon);
  for (const auto* wrong : {"", "[]", "{}", R"({"AccessKeyId":1,"SecretAccessKey":"s"})", "<html>"})
    CHECK_THROWS_AS(ses::parse_role_credentials(wrong, "x"), Error);
}

TEST_CASE("credentials are kept until shortly before their end, and then renewed while they hold") {
  std::atomic<int> fetches = 0;
  const WallTime start{1'000'000s};
  ses::CredentialKeeper keeper([&] {
    const int number = ++fetches;
    return ses::AwsCredentials{
        .key_id = std::to_string(number), .secret = "s", .ends = start + number * 3600s};
  });
  CHECK(keeper.get(start).key_id == "1");
  CHECK(keeper.get(start + 3600s - 301s).key_id == "1");
  CHECK(fetches == 1);
  // The mail that finds them nearly at their end still goes out with them.
  CHECK(keeper.get(start + 3600s - 299s).key_id == "1");
  while (keeper.get(start + 3600s - 299s).key_id == "1")
    std::this_thread::yield();
  CHECK(keeper.get(start + 3600s).key_id == "2");
  CHECK(keeper.get(start + 10'000s).key_id == "3");
  keeper.forget();
  CHECK(keeper.get(start + 10'000s).key_id == "4");
}

TEST_CASE("a file of credentials is read again after a minute, and an error is not kept") {
  int fetches = 0;
  const WallTime start{1'000'000s};
  ses::CredentialKeeper keeper([&]() -> ses::AwsCredentials {
    if (++fetches == 2) throw Error(ExitCode::configuration, "gone");
    return {.key_id = "A", .secret = std::to_string(fetches)};
  });
  CHECK(keeper.get(start).secret == "1");
  CHECK(keeper.get(start + 59s).secret == "1");
  CHECK_THROWS_WITH(keeper.get(start + 60s), "gone");
  CHECK(keeper.get(start + 60s).secret == "3");
}

TEST_CASE("each answer of SES has its outcome") {
  const std::string rejected = "MessageRejected";
  const std::vector<Row> rows{
      {400, "MessageRejected:http://internal.example/", "Address is on the suppression list",
       delivery::Verdict::rejected},
      {400, rejected,
       "Email address is not verified. The following identities failed the check: no-reply@app.example",
       delivery::Verdict::unavailable},
      {400, rejected,
       "Email address is not verified. The following identities failed the check: Ada@Example.org",
       delivery::Verdict::deferred},
      {400, "BadRequestException", "Invalid MIME", delivery::Verdict::rejected},
      {400, "com.amazonaws.ses#BadRequestException", "Invalid MIME", delivery::Verdict::rejected},
      {413, "", "too large", delivery::Verdict::rejected},
      {408, "", "slow", delivery::Verdict::deferred},
      {429, "TooManyRequestsException", "Too many requests", delivery::Verdict::deferred, true},
      {400, "ThrottlingException", "Maximum sending rate exceeded.", delivery::Verdict::deferred, true},
      {400, "ThrottlingException", "Daily message quota exceeded.", delivery::Verdict::unavailable},
      {454, "Throttling", "Maximum sending rate exceeded.", delivery::Verdict::deferred, true},
      {400, "LimitExceededException", "limit", delivery::Verdict::unavailable},
      {400, "AccountSuspendedException", "suspended", delivery::Verdict::unavailable},
      {400, "SendingPausedException", "paused", delivery::Verdict::unavailable},
      {400, "MailFromDomainNotVerifiedException", "no MX", delivery::Verdict::unavailable},
      {404, "NotFoundException", "Configuration set x does not exist", delivery::Verdict::unavailable},
      {404, "", "<UnknownOperationException/>", delivery::Verdict::unavailable},
      {403, "InvalidSignatureException", "Signature expired", delivery::Verdict::unavailable},
      {403, "UnrecognizedClientException", "The security token is invalid", delivery::Verdict::unavailable},
      {403, "AccessDeniedException", "not authorized to perform ses:SendEmail",
       delivery::Verdict::unavailable},
      {400, "ExpiredTokenException", "expired", delivery::Verdict::unavailable},
      {401, "", "", delivery::Verdict::unavailable},
      {301, "", "", delivery::Verdict::unavailable},
      {500, "InternalFailure", "oops", delivery::Verdict::deferred},
      {503, "ServiceUnavailable", "later", delivery::Verdict::deferred},
  };
  for (const auto& row : rows) {
    INFO(row.status << " " << row.name << " " << row.message);
    const auto answer = ses::judge_ses(answered(row.status, row.name, row.message), "ada@example.org", noon);
    CHECK(delivery::verdict_name(answer.verdict) == std::string(delivery::verdict_name(row.verdict)));
    CHECK(answer.throttled == row.throttled);
    CHECK(answer.waits_for_turn == row.throttled);
    CHECK(answer.code == row.status);
    CHECK_FALSE(answer.reply.empty());
  }
}

TEST_CASE("an answer that says too little is unknown, and a lost one never counts as refused") {
  auto taken = answered(200, "", "");
  taken.response.body = R"({"MessageId":"0102-abc"})";
  CHECK(ses::judge_ses(taken, "a@b.example", noon).verdict == delivery::Verdict::accepted);
  CHECK(ses::judge_ses(taken, "a@b.example", noon).reply == "0102-abc");
  taken.response.body = "<html>";
  CHECK(ses::judge_ses(taken, "a@b.example", noon).verdict == delivery::Verdict::unknown);
  auto gateway = answered(504, "", "");
  gateway.response.body = "";
  CHECK(ses::judge_ses(gateway, "a@b.example", noon).verdict == delivery::Verdict::unknown);
  for (const auto& [status, verdict] :
       std::vector<std::pair<int, delivery::Verdict>>{{0, delivery::Verdict::unknown},
                                                      {200, delivery::Verdict::unknown},
                                                      {400, delivery::Verdict::deferred},
                                                      {503, delivery::Verdict::deferred}}) {
    auto lost = answered(status, "", "");
    lost.end = http::HttpEnd::cut_off;
    lost.failure = "closed";
    INFO(status);
    CHECK(ses::judge_ses(lost, "a@b.example", noon).verdict == verdict);
    lost.end = http::HttpEnd::unsent;
    CHECK(ses::judge_ses(lost, "a@b.example", noon).verdict == delivery::Verdict::unavailable);
  }
}

TEST_CASE("the Message-ID that SES gives a mail follows from its answer") {
  CHECK(ses::message_id_of("0102-ab-000000", "eu-west-1") == "0102-ab-000000@eu-west-1.amazonses.com");
  CHECK(ses::message_id_of("0102-ab-000000", "us-east-1") == "0102-ab-000000@email.amazonses.com");
  const auto* const host = "email-smtp.eu-west-1.amazonaws.com";
  CHECK(ses::message_id_of_reply(host, "Ok 0102-ab-000000") == "0102-ab-000000@eu-west-1.amazonses.com");
  CHECK(ses::message_id_of_reply(host, "Throttling failure: Maximum sending rate exceeded.") == "");
  CHECK(ses::message_id_of_reply("email-smtp-fips.us-east-1.amazonaws.com", "Ok 01") ==
        "01@email.amazonses.com");
  CHECK(ses::message_id_of_reply("smtp.amazonaws.com.example", "Ok 01") == std::nullopt);
  CHECK(ses::message_id_of_reply("email-smtp.amazonaws.com", "Ok 01") == std::nullopt);
  CHECK(ses::message_id_of_reply("relay.example", "Ok 01") == std::nullopt);
}

TEST_CASE("a wait that SES names is heeded, and that of a day's quota is ten minutes") {
  auto limit = answered(429, "TooManyRequestsException", "Too many");
  limit.response.headers["retry-after"] = "7";
  CHECK(ses::judge_ses(limit, "a@b.example", noon).wait == Milliseconds(7000));
  auto down = answered(503, "ServiceUnavailable", "later");
  down.response.headers["retry-after"] = "3";
  CHECK(ses::judge_ses(down, "a@b.example", noon).throttled);
  CHECK(ses::judge_ses(answered(400, "ThrottlingException", "Daily message quota exceeded."), "a@b.example",
                       noon)
            .wait == Milliseconds(600'000));
}

TEST_CASE("a clock that is wrong is said by how much") {
  auto refused = answered(403, "InvalidSignatureException", "Signature expired");
  const auto reply = [&](const char* date) {
    refused.response.headers["date"] = date;
    return ses::judge_ses(refused, "a@b.example", noon).reply;
  };
  CHECK(reply("Wed, 25 Nov 2026 12:07:00 GMT") ==
        "InvalidSignatureException: Signature expired; the clock of this host is 7m behind the server's");
  CHECK(reply("Wed, 25 Nov 2026 10:59:30 GMT").ends_with("is 1h30s ahead of the server's"));
  CHECK(reply("Wed, 25 Nov 2026 12:00:30 GMT").ends_with("expired"));
  CHECK(reply("yesterday").ends_with("expired"));
}

TEST_CASE("what the account says of itself becomes findings") {
  using Level = carriers::SinkFinding::Level;
  const auto levels = [](const std::string& body) {
    std::vector<Level> all;
    for (const auto& finding : ses::judge_ses_account(body)) {
      CHECK((finding.level == Level::fine) == finding.hint.empty());
      all.push_back(finding.level);
    }
    return all;
  };
  const auto account = [](const char* more, double sent) {
    return fmt::format(
        R"({{{}"SendQuota":{{"Max24HourSend":200.0,"MaxSendRate":1.0,"SentLast24Hours":{}}}}})", more, sent);
  };
  CHECK(levels(account("", 0)) == std::vector{Level::fine});
  CHECK(levels(account("", 170)) == std::vector{Level::warning});
  CHECK(levels(account("", 200)) == std::vector{Level::failure});
  CHECK(levels(account(R"("ProductionAccessEnabled":false,)", 0)) ==
        std::vector{Level::warning, Level::fine});
  CHECK(levels(account(R"("SendingEnabled":false,)", 0)) == std::vector{Level::failure, Level::fine});
  CHECK(levels(account(R"("EnforcementStatus":"SHUTDOWN",)", 0)) == std::vector{Level::failure, Level::fine});
  CHECK(levels(account(R"("EnforcementStatus":"PROBATION",)", 0)) ==
        std::vector{Level::warning, Level::fine});
  CHECK(levels("{}").empty());
  CHECK(levels("<html>") == std::vector{Level::failure});
  CHECK(ses::is_verified_identity(R"({"VerifiedForSendingStatus":true})"));
  CHECK_FALSE(ses::is_verified_identity(R"({"VerifiedForSendingStatus":false})"));
  CHECK_FALSE(ses::is_verified_identity("[]"));
}

}  // namespace mailroom::test::ses_test
