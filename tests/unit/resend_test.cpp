// What mailing by Resend decides by values alone: endpoints, the fields of a mail, answers, limits.

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "carriers/resend/answer.hpp"
#include "carriers/resend/carrier.hpp"
#include "carriers/resend/endpoint.hpp"
#include "config/key_table.hpp"
#include "mail/message.hpp"
#include "support/catch.hpp"
#include "support/relay_paths.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::resend_test {

using namespace std::chrono_literals;

namespace {

http::HttpOutcome answered(int status, const std::string& body) {
  http::HttpOutcome outcome{.end = http::HttpEnd::answered};
  outcome.response.status = status;
  outcome.response.body = body;
  return outcome;
}

http::HttpOutcome refused(int status, const std::string& name, const std::string& message) {
  return answered(status,
                  fmt::format(R"({{"statusCode":{},"name":"{}","message":"{}"}})", status, name, message));
}

std::string verdict_of(const http::HttpOutcome& outcome, std::size_t mails = 1) {
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < mails; ++i)
    tokens.push_back(static_cast<std::int64_t>(10 + i));
  const auto answer = resend::judge_resend(outcome, tokens, 0);
  std::string text = delivery::verdict_name(answer.verdict);
  if (answer.throttled) text += ", throttled";
  if (answer.wait) text += fmt::format(", wait {}s", answer.wait->count() / 1000);
  return text;
}

mail::Mailbox mailbox(const std::string& text) {
  const auto parsed = mail::parse_mailbox(text);
  if (const auto* refusal = std::get_if<mail::Refusal>(&parsed)) FAIL(text + ": " + refusal->reason);
  return std::get<mail::Mailbox>(parsed);
}

}  // namespace

TEST_CASE("each answer of Resend has the outcome of the table") {
  struct Row {
    int status;
    const char* name;
    const char* message;
    const char* verdict;
  };
  for (const auto& row : std::vector<Row>{
           {400, "validation_error", "We found an error", "rejected"},
           {400, "validation_error", "API key is invalid", "unavailable"},
           {400, "invalid_idempotency_key", "1-256", "rejected"},
           {401, "missing_api_key", "Missing", "unavailable"},
           {401, "restricted_api_key", "only send", "unavailable"},
           {403, "invalid_api_key", "API key is invalid", "unavailable"},
           {403, "validation_error", "You can only send testing emails to your own email address",
            "unavailable"},
           {404, "not_found", "", "unavailable"},
           {405, "method_not_allowed", "", "unavailable"},
           {408, "", "timeout", "deferred"},
           {409, "concurrent_idempotent_requests", "in progress", "unknown, wait 1s"},
           {409, "invalid_idempotent_request", "different", "unknown, wait 1s"},
           {422, "invalid_attachment", "", "rejected"},
           {422, "invalid_from_address", "", "unavailable"},
           {422, "missing_required_field", "", "rejected"},
           {429, "rate_limit_exceeded", "Too many requests", "deferred, throttled"},
           {429, "daily_quota_exceeded", "quota", "unavailable, wait 600s"},
           {429, "monthly_quota_exceeded", "quota", "unavailable, wait 600s"},
           {451, "security_error", "", "rejected"},
           {500, "application_error", "An unexpected error", "deferred"},
           {500, "internal_server_error", "", "deferred"},
           {302, "", "moved", "unavailable"},
       }) {
    CAPTURE(row.status, row.name, row.message);
    CHECK(verdict_of(refused(row.status, row.name, row.message)) == row.verdict);
    // A refusal of several that may be about one is not yet about any.
    CHECK(verdict_of(refused(row.status, row.name, row.message), 3) == row.verdict);
  }
  CHECK(verdict_of(answered(502, "<html>Bad gateway</html>")) == "unknown");
  CHECK(verdict_of(answered(200, R"({"id":"49a3"})")) == "accepted");
  CHECK(verdict_of(answered(200, R"({"object":"email"})")) == "unknown");
  CHECK(verdict_of(answered(200, "")) == "unknown");
  CHECK(verdict_of({.end = http::HttpEnd::unsent, .failure = "refused"}) == "unavailable");
  CHECK(verdict_of({.end = http::HttpEnd::cut_off, .failure = "closed"}) == "unknown");
  auto cut = answered(422, "{\"na");
  cut.end = http::HttpEnd::cut_off;
  CHECK(verdict_of(cut) == "deferred");
  cut.response.status = 200;
  CHECK(verdict_of(cut) == "unknown");
}

TEST_CASE("an answer to several mails names each, or says nothing of any") {
  const auto of = [](const char* body) {
    const auto answer = resend::judge_resend(answered(200, body), {7, 8, 9}, 0);
    std::string text;
    for (const auto& token : answer.tokens)
      text += fmt::format("{} {} {}; ", token.token, delivery::verdict_name(token.verdict), token.reason);
    return text.empty() ? std::string(delivery::verdict_name(answer.verdict)) : text;
  };
  CHECK(of(R"({"data":[{"id":"a"},{"id":"b"},{"id":"c"}]})") == "7 accepted a; 8 accepted b; 9 accepted c; ");
  CHECK(of(R"({"data":[{"id":"a"},{"id":"c"}],"errors":[{"index":1,"message":"no"}]})") ==
        "7 accepted a; 8 rejected no; 9 accepted c; ");
  CHECK(of(R"({"data":[],"errors":[{"index":2},{"index":0,"message":"x"},{"index":1,"message":"y"}]})") ==
        "7 rejected x; 8 rejected y; 9 rejected refused without words; ");
  for (const auto* body :
       {R"({"data":[{"id":"a"},{"id":"b"}]})", R"({"data":[{"id":"a"},{"id":"b"}],"errors":[{"index":3}]})",
        R"({"data":[{"id":"a"},{"id":"b"},{"id":"c"}],"errors":[{"index":1}]})", R"({"data":{}})", "[]", "{",
        ""})
    CHECK(of(body) == "unknown");
}

TEST_CASE("the next request waits as long as the limit of Resend says, and ten seconds at most") {
  const auto rest = [](std::map<std::string, std::string, std::less<>> headers, int status = 200) {
    http::HttpResponse response;
    response.status = status;
    response.headers = std::move(headers);
    const auto wait = resend::rest_of_limit(response);
    return wait ? wait->count() : -1;
  };
  CHECK(rest({}) == -1);
  CHECK(rest({{"ratelimit-remaining", "1"}, {"ratelimit-reset", "1"}}) == -1);
  CHECK(rest({{"ratelimit-remaining", "0"}, {"ratelimit-reset", "1"}}) == 1000);
  CHECK(rest({{"ratelimit-remaining", "0"}}) == -1);
  CHECK(rest({{"ratelimit-remaining", "0"}, {"ratelimit-reset", "3600"}}) == 10'000);
  CHECK(rest({{"retry-after", "3"}}, 429) == 3000);
  CHECK(rest({{"retry-after", "3"}}) == -1);
}

TEST_CASE("a mail is read back into the fields of Resend as it was composed") {
  const auto from = mailbox("\"Exämple, Inc.\" <no-reply@app.example>");
  const mail::MessageBuilder builder(from, {}, {{"X-Campaign", "spring"}});
  mail::MailContent content{.date = Moment(1'800'000'000s), .queue = "mailroom", .key = "k", .token = 5};
  content.to = {mailbox("Ada Lovelace <ada@mail.example>"), mailbox("bob@mail.example")};
  content.cc = {mailbox("Zoë <zoe@mail.example>")};
  content.reply_to = {mailbox("Hilfe <help@app.example>"), mailbox("desk@app.example")};
  content.subject =
      "Grüße, ein langer Betreff, der nicht in eine Zeile passt, und noch ein Wort mehr als das";
  content.text = "zahlen\n.7\nFrom here = ä\n";
  content.html = "<p>ä = \"x\"</p><img src=\"cid:logo\">\n";
  content.attachments = {
      {.name = "Rechnung Ä.pdf", .content_type = "application/pdf", .content_id = {}, .bytes = "%PDF"},
      {.name = {}, .content_type = "image/png", .content_id = "logo", .bytes = "png"},
      {.name = "n.txt", .content_type = "text/plain", .content_id = {}, .bytes = "note"},
      {.name = "i.ics", .content_type = "text/calendar; method=REQUEST", .content_id = {}, .bytes = "1"}};
  const auto built = builder.build(content);
  if (const auto* refusal = std::get_if<mail::Refusal>(&built)) FAIL(refusal->reason);
  const auto& bytes = std::get<std::string>(built);
  const auto mail =
      resend::read_resend_mail(bytes, {.from = "no-reply@app.example", .to = "zoe@mail.example"}, "[1]");
  CHECK(mail.message_id == "mailroom.k.5.mailroom@app.example");
  const auto json = parse_json(mail.json);
  CHECK(json["from"] == "\"Exämple, Inc.\" <no-reply@app.example>");
  CHECK(json["to"] == nlohmann::json::array({"Zoë <zoe@mail.example>"}));
  CHECK_FALSE(json.contains("cc"));
  CHECK(json["reply_to"] == nlohmann::json::array({"Hilfe <help@app.example>", "desk@app.example"}));
  CHECK(json["subject"] == content.subject);
  CHECK(json["text"] == *content.text);
  CHECK(json["html"] == *content.html);
  CHECK(json["tags"] == nlohmann::json::array({1}));
  CHECK(json["headers"] == parse_json(R"({"Auto-Submitted": "auto-generated",
    "X-Auto-Response-Suppress": "All", "X-Campaign": "spring"})"));
  REQUIRE(json["attachments"].size() == 4);
  std::map<std::string, nlohmann::json> files;
  for (const auto& file : json["attachments"])
    files[file["filename"].get<std::string>()] = file;
  CHECK(files["Rechnung Ä.pdf"]["content"] == "JVBERg==");
  CHECK(files["Rechnung Ä.pdf"]["content_type"] == "application/pdf");
  CHECK(files["logo"]["content_id"] == "logo");
  CHECK(files["n.txt"]["content"] == "bm90ZQ==");
  // Resend has no place for an alternative: its file is the invitation.
  CHECK(files["i.ics"]["content_type"] == "text/calendar; method=REQUEST; charset=utf-8");
  const auto again =
      resend::read_resend_mail(bytes, {.from = "no-reply@app.example", .to = "zoe@mail.example"}, "[1]");
  CHECK(again.json == mail.json);
  CHECK(
      parse_json(resend::read_resend_mail(bytes, {.from = {}, .to = "other@mail.example"}, {}).json)["to"] ==
      nlohmann::json::array({"other@mail.example"}));
  CHECK_THROWS_AS(resend::read_resend_mail("", {}, {}), Error);
}

TEST_CASE("what Resend gets of a file and of a name is what the mail has") {
  const std::string bytes =
      "From: \"The \\\"Shop\\\"\" <no-reply@app.example>\r\nTo: \"5\\\" disk\" <a@mail.example>\r\n"
      "Reply-To: \"a\\\\b\" <help@app.example>\r\nSubject: s\r\nMIME-Version: 1.0\r\n"
      "Content-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\nContent-Type: text/plain\r\n\r\nt\r\n--B\r\n"
      "Content-Type: text/calendar; method=REQUEST; charset=utf-8; name=\"i.ics\"\r\n"
      "Content-Disposition: attachment; filename=\"i.ics\"\r\n\r\n1\r\n--B\r\n"
      "Content-Type: application/x-a; note=\"a \\\"b\\\"\"\r\nContent-Disposition: attachment; filename=b\r\n\r\n"
      "2\r\n--B--\r\n";
  const auto json =
      parse_json(resend::read_resend_mail(bytes, {.from = {}, .to = "a@mail.example"}, {}).json);
  CHECK(json["from"] == R"("The \"Shop\"" <no-reply@app.example>)");
  CHECK(json["to"][0] == R"("5\" disk" <a@mail.example>)");
  CHECK(json["reply_to"][0] == R"("a\\b" <help@app.example>)");
  CHECK(json["attachments"][0]["content_type"] == "text/calendar; method=REQUEST; charset=utf-8");
  CHECK(json["attachments"][1]["content_type"] == R"(application/x-a; note="a \"b\"")");
}

TEST_CASE("resend:// names nothing else, and its key is read from a file of its own") {
  TemporaryDirectory directory;
  const auto name_of = [](const std::string& relay, const std::string& endpoint = {}) -> std::string {
    auto path = path_of(relay);
    path.options["send.resend_endpoint"] = endpoint;
    try {
      const auto parsed = resend::parse_resend_endpoint(path);
      return parsed.url + " " + parsed.name;
    } catch (const Error& error) {
      return error.what();
    }
  };
  CHECK(name_of("resend://") == "https://api.resend.com api.resend.com:443");
  CHECK(name_of(" RESEND:// ") == "https://api.resend.com api.resend.com:443");
  CHECK(name_of("resend://api.resend.com") == "a relay of Resend has more than resend:// in its URL");
  CHECK(name_of("resend://re_geheim@").find("geheim") == std::string::npos);
  CHECK(name_of("resend://", "http://127.0.0.1:4000/") == "http://127.0.0.1:4000 127.0.0.1:4000");
  CHECK(name_of("resend://", "http://mail.example").find("is http:// to another host") != std::string::npos);
  CHECK(name_of("resend://", "https://mail.example/v1") == "send.resend_endpoint has a path");
  CHECK(name_of("resend://", "mail.example") == "send.resend_endpoint does not begin with https://");
  const auto key_of = [&](const std::string& text, unsigned mode = 0600) -> std::string {
    auto path = path_of("resend://");
    path.options["send.resend_key_file"] = directory.write("key", text, mode);
    try {
      return resend::read_resend_key(path);
    } catch (const Error& error) {
      return "refused: " + std::string(error.what());
    }
  };
  CHECK(key_of("re_abc\n") == "re_abc");
  CHECK(key_of("hunter2\n").find("refused: send.resend_key_file has no API key of Resend") == 0);
  CHECK(key_of("hunter2\n").find("hunter2") == std::string::npos);
  CHECK(key_of("re_abc\n", 0644).find("refused") == 0);
}

TEST_CASE("a mail that its program has made is refused if Resend would make another one of it") {
  const std::string from = "From: a@shop.example\r\nMIME-Version: 1.0\r\n";
  const auto parts = [&](const std::string& type, const std::vector<std::string>& each) {
    auto mail = from + "Content-Type: " + type + "; boundary=b\r\n\r\n";
    for (const auto& part : each)
      mail += "--b\r\nContent-Type: " + part + "\r\n\r\nx\r\n";
    return mail + "--b--\r\n";
  };
  CHECK(resend::inexpressible_part(from + "\r\nx\r\n").empty());
  CHECK(resend::inexpressible_part(parts("multipart/alternative", {"text/plain", "text/html"})).empty());
  CHECK(resend::inexpressible_part(parts("multipart/mixed", {"text/html", "application/pdf"})).empty());
  CHECK(resend::inexpressible_part(
            parts("multipart/mixed", {"text/plain", "text/plain\r\nContent-Disposition: attachment"}))
            .empty());
  CHECK(resend::inexpressible_part("DKIM-Signature: v=1\r\n" + from + "\r\nx\r\n") == "a DKIM signature");
  CHECK(resend::inexpressible_part("Resent-From: b@shop.example\r\n" + from + "\r\nx\r\n") ==
        "the header of a mail that was resent");
  CHECK(resend::inexpressible_part(parts("multipart/mixed", {"text/plain", "text/plain"})) ==
        "a second part of the type text/plain");
  CHECK(resend::inexpressible_part(parts("multipart/alternative", {"text/plain", "text/calendar"})) ==
        "an alternative of the type text/calendar");
  CHECK(resend::inexpressible_part(
            parts("multipart/mixed", {"text/plain", "message/rfc822\r\n\r\nFrom: a@b"})) ==
        "a part of the type message/rfc822");
  CHECK(resend::inexpressible_part(parts("multipart/signed", {"text/plain"})) ==
        "a part of the type multipart/signed");

  const resend::ResendProtocol protocol({}, {});
  delivery::Message message{.body = "DKIM-Signature: v=1\r\nFrom: a@shop.example\r\n\r\nx\r\n",
                            .envelope = {.from = "a@shop.example", .to = "ada@mail.example"}};
  CHECK(protocol.problem_of(message).empty());
  message.is_raw = true;
  CHECK(protocol.problem_of(message) ==
        "Resend's API has no place for a DKIM signature: use smtps://smtp.resend.com");
  message.body = "From: a@shop.example\r\n\r\nx\r\n";
  CHECK(protocol.problem_of(message).empty());
  message.envelope.from.clear();
  CHECK(protocol.problem_of(message) ==
        "Resend's API has no place for an empty envelope sender: use smtps://smtp.resend.com");
}

}  // namespace mailroom::test::resend_test
