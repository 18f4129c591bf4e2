// What handing over decides by values alone: commands, answers of programs, ids.

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

#include "carriers/carriers.hpp"
#include "carriers/cloud_event.hpp"
#include "carriers/exec/carrier.hpp"
#include "crypto/base64.hpp"
#include "crypto/digest.hpp"
#include "delivery/delivery_policy.hpp"
#include "delivery/dispatcher.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::handover_test {

using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const auto byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

/// `verdict batch token text`, or `none`.
std::string read(std::string_view line) {
  const auto answer = exec::parse_exec_answer(line);
  if (!answer) return "none";
  return fmt::format("{} {} {} '{}'", delivery::verdict_name(answer->verdict), answer->batch,
                     answer->token ? std::to_string(*answer->token) : "*", answer->text);
}

/// True if a statement of `code` begins with `begin` and has `part`.
bool has_call(std::string_view code, const std::string& begin, std::string_view part) {
  for (auto at = code.find(begin); at != std::string_view::npos; at = code.find(begin, at + 1)) {
    const auto statement = code.substr(at, code.find(';', at) - at);
    if (statement.find(part) != std::string_view::npos) return true;
  }
  return false;
}

delivery::ComposedToken token_with(const std::string& text) {
  delivery::ComposedToken token;
  token.text = text;
  return token;
}

}  // namespace

TEST_CASE("a line is a CloudEvent only with a source, and the same at each attempt") {
  delivery::Message message;
  message.message_id = "p%C3%A4.7.1.ab";
  message.queue = "pä";
  message.action = "mixed";
  message.created_at = 1795438488;
  CHECK(carriers::cloud_event_attributes(message, "").empty());
  const auto first = carriers::cloud_event_attributes(message, "/mailroom");
  using Attribute = std::pair<std::string, std::string>;
  CHECK(first == std::vector<Attribute>{{"specversion", "1.0"},
                                        {"id", "p%C3%A4.7.1.ab"},
                                        {"source", "/mailroom"},
                                        {"type", "mailroom.mixed"},
                                        {"subject", "pä"},
                                        {"time", "2026-11-23T12:54:48Z"}});
  message.attempt = 2;
  CHECK(carriers::cloud_event_attributes(message, "/mailroom") == first);
  CHECK(carriers::cloud_event_header_value("p%C3%A4.7") == "p%25C3%25A4.7");
  CHECK(carriers::cloud_event_header_value("Euro € \"") == "Euro%20%E2%82%AC%20%22");
}

TEST_CASE("a command is split into words as by a shell") {
  CHECK(exec::command_words("") == Words{});
  CHECK(exec::command_words("  sender \t --fast\n") == Words{"sender", "--fast"});
  CHECK(exec::command_words("sh -c 'cat > \"a b\"'") == Words{"sh", "-c", "cat > \"a b\""});
  CHECK(exec::command_words(R"(a\ b "c \" \\ \d" e'f'"g")") == Words{"a b", R"(c " \ \d)", "efg"});
  CHECK(exec::command_words("a '' \"\"") == Words{"a", "", ""});
  CHECK(exec::command_words("$HOME *") == Words{"$HOME", "*"});
  CHECK_FALSE(exec::command_words("sh -c 'cat"));
  CHECK_FALSE(exec::command_words("\"a"));
  CHECK_FALSE(exec::command_words("a \\"));
}

TEST_CASE("a program answers with ok and fail, and everything else is no answer") {
  CHECK(read("ok mailroom.7.1.ab") == "accepted mailroom.7.1.ab * ''");
  CHECK(read("ok b queued as 17\r") == "accepted b * 'queued as 17'");
  CHECK(read("fail b 12 retry mailbox busy") == "deferred b 12 'mailbox busy'");
  CHECK(read("fail b 12 reject") == "rejected b 12 ''");
  CHECK(read("fail b * retry") == "deferred b * ''");
  for (const auto* line : {"", "ok", "ok ", " ok b", "OK b", "fail b", "fail b 12", "fail b 12 maybe x",
                           "fail b x retry", "fail b 99999999999999999999 retry", "okay b", "ok\tb"}) {
    INFO(line);
    CHECK(read(line) == "none");
  }
}

TEST_CASE("a reply is recorded without anything that tells a token") {
  const std::string text(86, 'x');
  const std::vector<delivery::ComposedToken> tokens{token_with("abcdefghijklmnop"), token_with(text)};
  CHECK(delivery::shown_reply("queued as 4711", tokens) == "queued as 4711");
  CHECK(delivery::shown_reply("a\nb", tokens) == "a?b");
  CHECK(delivery::shown_reply(std::string(180, '.') + text, tokens) == "(not shown: it repeats the token)");
  CHECK(delivery::shown_reply("got bcdefghijklmn", tokens) == "(not shown: it repeats the token)");
  CHECK(delivery::shown_reply("got abcdefghijk", tokens) == "got abcdefghijk");
  CHECK(delivery::shown_reply(std::string(500, 'y'), tokens).size() == 200);
}

TEST_CASE("a line is sent again after 0.25 s, doubling to 5 s") {
  CHECK(delivery::resend_delay(1, 0) == 250ms);
  CHECK(delivery::resend_delay(2, 0) == 500ms);
  CHECK(delivery::resend_delay(5, 0) == 4000ms);
  CHECK(delivery::resend_delay(6, 0) == 5000ms);
  CHECK(delivery::resend_delay(1000, 0) == 5000ms);
  CHECK(delivery::resend_delay(1, 1) == 200ms);
}

TEST_CASE("an answer counts for the tokens that it does not name") {
  delivery::Answer answer;
  answer.verdict = delivery::Verdict::accepted;
  answer.reply = "250";
  answer.wait = 1500ms;
  answer.tokens = {{5, delivery::Verdict::rejected, "no"}};
  delivery::ComposedToken token;
  token.history.token = 4;
  CHECK(delivery::answer_to(answer, token).verdict == delivery::Verdict::accepted);
  CHECK(delivery::answer_to(answer, token).reply == "250");
  CHECK(delivery::answer_to(answer, token).wait == 1500ms);
  token.history.token = 5;
  CHECK(delivery::answer_to(answer, token).verdict == delivery::Verdict::rejected);
  CHECK(delivery::answer_to(answer, token).reply == "no");
}

TEST_CASE("what was rejected after a try without an answer is unknown") {
  delivery::Answer delivery;
  delivery.verdict = delivery::Verdict::rejected;
  const delivery::DeliveryPolicy policy{.supersede = false, .resends = 1000};
  CHECK(delivery::outcome_of(delivery, {}, false, policy, 0).state == fate::Outcome::rejected);
  const auto outcome = delivery::outcome_of(delivery, {}, true, policy, 0);
  CHECK(outcome.state == fate::Outcome::unknown);
  CHECK(outcome.unknowns == 1);
}

TEST_CASE("every kind of sink has a name of its own, and every scheme one kind") {
  std::set<std::string_view> names;
  std::set<std::string_view> schemes;
  int without_scheme = 0;
  const auto check = [&](const auto& kind) {
    CHECK(names.insert(kind.name).second);
    without_scheme += kind.schemes.empty() ? 1 : 0;
    for (const auto scheme : kind.schemes)
      CHECK(schemes.insert(scheme).second);
    CHECK((kind.make == nullptr) == (kind.check == nullptr));
  };
  std::ranges::for_each(carriers::carrier_kinds(), check);
  std::ranges::for_each(carriers::relay_kinds(), check);
  CHECK(without_scheme == 1);
}

TEST_CASE("a setting that only other sinks or relays read is found, and none that has an effect") {
  const auto unread = [](carriers::Carries carries, const config::EnvironmentVariables& variables) {
    std::string text;
    for (const auto& found :
         carriers::unread_settings(config::load_settings({}, variables, config::FileUse::ignored), carries))
      text += fmt::format("{} from {}: {}\n", found.value.name(), found.value.origin.where, found.readers);
    return text;
  };
  const config::EnvironmentVariables sinks{{"MAILROOM_SINK_STREAM", "OTHER"},
                                           {"MAILROOM_SINK_EXCHANGE", "mails"},
                                           {"MAILROOM_SINK_PASSWORD_FILE", "/password"},
                                           {"MAILROOM_SINK_TIMEOUT", "1s"}};
  const auto lines = [&](const char* key, const char* value) {
    auto variables = sinks;
    variables[key] = value;
    return unread(carriers::Carries::lines, variables);
  };
  CHECK(lines("MAILROOM_SINK_TO", "nats://localhost") == "sink.exchange from MAILROOM_SINK_EXCHANGE: amqp\n");
  CHECK(lines("MAILROOM_SINK_TO", "amqp://localhost") == "sink.stream from MAILROOM_SINK_STREAM: nats\n");
  CHECK(
      lines("MAILROOM_SINK_EXEC", "cat") ==
      "sink.password_file from MAILROOM_SINK_PASSWORD_FILE: nats and amqp\nsink.stream from MAILROOM_SINK_STREAM: "
      "nats\nsink.exchange from MAILROOM_SINK_EXCHANGE: amqp\n");
  CHECK(unread(carriers::Carries::lines, sinks).empty());
  const auto mails = [&](const char* relays) {
    return unread(carriers::Carries::mails, {{"MAILROOM_SEND_RELAY", relays},
                                             {"MAILROOM_SEND_PASSWORD_FILE", "/password"},
                                             {"MAILROOM_SEND_RESEND_KEY_FILE", "/key"}});
  };
  CHECK(mails("smtp://localhost") == "send.resend_key_file from MAILROOM_SEND_RESEND_KEY_FILE: resend\n");
  CHECK(mails("resend://").starts_with("send.password_file from "));
  CHECK(unread(carriers::Carries::mails,
               {{"MAILROOM_SEND_RELAY", "resend://"}, {"MAILROOM_SEND_THROTTLED_BY", "4.7.28"}}) ==
        "send.throttled_by from MAILROOM_SEND_THROTTLED_BY: smtp\n");
  CHECK(mails("smtp://localhost,resend://").empty());
  CHECK(mails("capture:///mails").empty());
  CHECK(mails("").empty());
}

TEST_CASE("each kind of sink has tests that hold it to the contract of carriers") {
  std::string tests;
  for (const std::string directory : {"/tests/handover", "/tests/broker"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source_directory + directory)) {
      if (entry.path().extension() == ".cpp") tests += read_file(entry.path().string());
    }
  }
  const auto check = [&](const carriers::KindName& kind) {
    INFO(kind.name);
    CHECK(has_call(tests, fmt::format("check_carrier(\"{}\",", kind.name), "Verdict::accepted"));
    CHECK(has_call(tests, fmt::format("check_carrier(\"{}\",", kind.name), "Verdict::unavailable"));
    CHECK(has_call(tests, fmt::format("check_cancel(\"{}\",", kind.name), ""));
  };
  std::ranges::for_each(carriers::carrier_kinds(), check);
  std::ranges::for_each(carriers::relay_kinds(), check);
}

TEST_CASE("a URL that no sink takes is an error of the configuration, which shows no password") {
  config::Settings settings;
  settings.sink.to = "kafka://broker:9092";
  CHECK_THROWS_WITH(carriers::configured_carrier(settings), "sink.to has an unknown scheme, 'kafka'");
  settings.sink.to = "smtp://relay.example";
  CHECK_THROWS_WITH(carriers::configured_carrier(settings), "sink.to is the URL of a relay: smtp://");
  settings.sink.to = "user:geheim@host";
  CHECK_THROWS_WITH(carriers::configured_carrier(settings), "sink.to is no URL: 'host'");
  settings.sink.to = "";
  settings.sink.exec = "sender";
  CHECK(carriers::configured_carrier(settings).name == "exec");
}

TEST_CASE("base64 and SHA-256 are those of the standards") {
  const std::string text = "foobar";
  const std::vector<std::pair<std::string, std::string>> vectors{{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"},
                                                                 {"\xff\xef\xbe", "/+++"}};
  for (const auto& [plain, encoded] : vectors) {
    const std::vector<std::uint8_t> bytes(plain.begin(), plain.end());
    CHECK(crypto::base64(bytes) == encoded);
    CHECK(crypto::decoded_base64(encoded) == bytes);
  }
  for (const auto* wrong : {"Zg", "Zg=", "Zg==\n", "Z===", "Zh==", "-_++", "Zm9v Zg=", "===="}) {
    INFO(wrong);
    CHECK_FALSE(crypto::decoded_base64(wrong));
  }
  CHECK(hex(crypto::sha256({"a", "bc"})) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace mailroom::test::handover_test
