// Who may post events, and what is answered.

#include "webhook/event_webhook.hpp"

#include <fmt/format.h>
#include <thread>

#include "crypto/base64.hpp"
#include "support/catch.hpp"

namespace mailroom::test::event_webhook_test {
namespace {

const std::string secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";  // of the documents of Svix
const std::string other_secret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const std::string body = R"({"type":"email.delivered","data":{"email_id":"1","to":["ada@mail.example"]}})";
constexpr std::int64_t moment = 1'614'265'330;

process::HttpCall signed_call(const std::string& id, std::int64_t time, const std::string& bytes,
                              const std::string& by = secret) {
  return {.method = "POST",
          .path = "/",
          .headers = {{"svix-id", id},
                      {"svix-timestamp", std::to_string(time)},
                      {"svix-signature",
                       http::WebhookSigner(std::vector<std::string>{by}).signature(id, time, bytes)}},
          .body = bytes};
}

std::string problem_of(const process::HttpCall& call, std::int64_t now = moment) {
  return webhook::SvixVerifier(http::WebhookSigner(std::vector<std::string>{other_secret, secret}))
      .problem_of(call, now);
}

void set_header(process::HttpCall& call, const std::string& name, const std::string& value) {
  call.headers.erase(name);
  call.headers.emplace(name, value);
}

std::int64_t now_in_seconds() {
  return std::chrono::floor<std::chrono::seconds>(wall_now()).time_since_epoch().count();
}

}  // namespace

TEST_CASE("the signature of the documents of Svix is valid, and only for its bytes") {
  process::HttpCall call{.method = "POST",
                         .path = "/",
                         .headers = {{"svix-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
                                     {"svix-timestamp", "1614265330"},
                                     {"svix-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
                         .body = R"({"test": 2432232314})"};
  CHECK(problem_of(call).empty());
  call.body += ' ';
  CHECK(problem_of(call).find("has signed it") != std::string::npos);
}

TEST_CASE("a request of somebody else, or an old one, is refused") {
  const auto good = signed_call("msg_1", moment, body);
  CHECK(problem_of(good).empty());
  CHECK(problem_of(good, moment + 300).empty());
  CHECK(problem_of(good, moment - 300).empty());
  CHECK(problem_of(good, moment + 301) == "it was signed more than 5 minutes ago");
  CHECK(problem_of(good, moment - 301) == "it was signed more than 5 minutes in the future");
  const std::string stranger = "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";
  CHECK_FALSE(problem_of(signed_call("msg_1", moment, body, stranger)).empty());
  for (const auto* header : {"svix-id", "svix-timestamp", "svix-signature"}) {
    INFO(header);
    auto call = good;
    call.headers.erase(header);
    CHECK(problem_of(call) == "a header of the signature is missing or malformed");
  }
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"svix-id", "msg_2"},
           {"svix-timestamp", std::to_string(moment + 1)},
           {"svix-timestamp", "0" + std::to_string(moment)},
           {"svix-timestamp", "-1"},
           {"svix-timestamp", "99999999999999999999"},
           {"svix-signature", "v1,"},
           {"svix-signature", "v2," + std::string(good.header("svix-signature")).substr(3)},
           {"svix-signature", std::string(good.header("svix-signature")).substr(0, 20)},
           {"svix-signature", "v1," + crypto::base64(std::vector<std::uint8_t>(32))}}) {
    INFO(name << " " << value);
    auto call = good;
    set_header(call, name, value);
    // The text of the time is signed: one zero more before it is another text, and reads as the same number.
    if (value.starts_with("0")) continue;
    CHECK_FALSE(problem_of(call).empty());
  }
}

TEST_CASE("one of several signatures suffices, while a secret is replaced") {
  auto call = signed_call("msg_1", moment, body);
  const std::string good(call.header("svix-signature"));
  set_header(call, "svix-signature", "v1a,xyz v1,!!! v1,AAAA " + good);
  CHECK(problem_of(call).empty());
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += "v1," + crypto::base64(std::vector<std::uint8_t>(32)) + " ";
  set_header(call, "svix-signature", many + good);
  CHECK_FALSE(problem_of(call).empty());
  webhook::SvixVerifier none(http::WebhookSigner(std::vector<std::string>{}));
  CHECK(none.problem_of(call, moment).starts_with("bounce.resend_secret_files"));
}

TEST_CASE("what is answered says whether to post again") {
  struct NoWeb final : webhook::SnsWeb {
    std::optional<std::string> get(const std::string&) override {
      throw std::logic_error("nothing is fetched");
    }
  } web;
  webhook::SvixVerifier svix(http::WebhookSigner(std::vector<std::string>{secret}));
  webhook::SnsVerifier sns({}, web);
  auto receipt = webhook::EventReceipt::recorded;
  int submitted = 0;
  webhook::MailgunVerifier mailgun({});
  const webhook::SendGridVerifier sendgrid({}, "");
  const webhook::SecretVerifier secrets({});
  webhook::EventWebhook webhook(
      {.svix = svix, .sns = sns, .web = web, .mailgun = mailgun, .sendgrid = sendgrid, .secrets = secrets},
      [&](const std::vector<bounce::ReadEvent>& events) {
        REQUIRE(events.size() == 1);
        CHECK(events.front().bounce.mail.id == "1");
        ++submitted;
        return receipt;
      });
  const auto post = [&](const std::string& bytes) {
    return webhook.answer(signed_call("msg_1", now_in_seconds(), bytes)).status;
  };
  CHECK(post(body) == 200);
  receipt = webhook::EventReceipt::not_yet;
  CHECK(post(body) == 503);
  receipt = webhook::EventReceipt::failed;
  CHECK(post(body) == 503);
  CHECK(submitted == 3);
  CHECK(post(R"({"type":"email.opened","data":{}})") == 200);
  CHECK(webhook.take_news().refused == 0);
  CHECK(post("no JSON") == 400);
  CHECK(webhook.take_news().reason == "it is no JSON");
  CHECK(webhook.answer({.method = "GET", .path = "/", .headers = {}, .body = {}}).status == 405);
  CHECK(webhook.answer({.method = "POST", .path = "/", .headers = {}, .body = body}).status == 401);
  CHECK(webhook.answer(signed_call("msg_1", now_in_seconds(), body, other_secret)).status == 401);
  const auto news = webhook.take_news();
  CHECK(news.refused == 2);
  CHECK(news.reason == "no secret in bounce.resend_secret_files has signed it");
  CHECK(submitted == 3);
  int many = 0;
  for (int i = 0; i < 2 * webhook::EventWebhook::most_a_second + 10; ++i)
    many += post(body) == 429 ? 1 : 0;
  CHECK(many > 0);
}

TEST_CASE("an event waits for its record, and no longer than its client does") {
  using std::chrono::milliseconds;
  webhook::EventIntake intake;
  CHECK(intake.submit({}, milliseconds(10)) == webhook::EventReceipt::failed);
  CHECK(intake.take().empty());
  std::thread client(
      [&] { CHECK(intake.submit({}, std::chrono::seconds(60)) == webhook::EventReceipt::not_yet); });
  std::vector<std::shared_ptr<webhook::Handover>> taken;
  while (taken.empty())
    taken = intake.take();
  intake.settle(*taken.front(), webhook::EventReceipt::not_yet);
  client.join();
  std::thread late(
      [&] { CHECK(intake.submit({}, std::chrono::seconds(60)) == webhook::EventReceipt::failed); });
  while (intake.take().empty()) {
  }
  intake.close();
  late.join();
  CHECK(intake.submit({}, std::chrono::seconds(60)) == webhook::EventReceipt::failed);
}

}  // namespace mailroom::test::event_webhook_test
