#include "compose/encoder.hpp"

#include <algorithm>
#include <random>

#include "base/json.hpp"
#include "support/actions.hpp"
#include "support/batch_rows.hpp"
#include "support/catch.hpp"
#include "support/misleading_text.hpp"

namespace mailroom::test::encoder_test {

using test::parse_record;
using test::row_of;

namespace {

std::string csv(std::string_view value) {
  std::string line;
  compose::append_csv_value(line, value);
  return line;
}

std::string random_text(std::mt19937_64& random, const std::string& alphabet, std::size_t longest) {
  std::string text;
  for (auto length = random() % (longest + 1); length > 0; --length)
    text += alphabet[random() % alphabet.size()];
  return text;
}

std::string token_of(char c) {
  return std::string(crypto::token_size, c);
}

}  // namespace

TEST_CASE("a CSV value is quoted only if RFC 4180 requires it") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", ""},
      {"plain", "plain"},
      {"a b", "a b"},
      {"'", "'"},
      {",", "\",\""},
      {"\"", "\"\"\"\""},
      {"\r", "\"\r\""},
      {"\n", "\"\n\""},
      {"a,b", "\"a,b\""},
      {"say \"x\"", "\"say \"\"x\"\"\""},
      {"\"\"", "\"\"\"\"\"\""},
      {"ü;\t", "ü;\t"},
  };
  for (const auto& [value, expected] : cases) {
    INFO(value);
    CHECK(csv(value) == expected);
    CHECK(parse_record(csv(value)) == std::vector<std::string>{value});
  }
}

TEST_CASE("records of any values are read back by a strict parser") {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<std::string> values;
    std::string record;
    for (auto count = 1 + random() % 8; count > 0; --count) {
      values.push_back(random_text(random, ",\"\r\nab \xc3", 6));
      if (values.size() > 1) record += ',';
      compose::append_csv_value(record, values.back());
    }
    REQUIRE(parse_record(record) == values);
  }
}

TEST_CASE("a CSV batch is one line of five values for each token, like this") {
  const auto encoder = compose::make_csv_encoder();
  encoder->begin({7, 1});
  encoder->add(row_of(1, activation_action(), "a@test.example", "a"), token_of('x'));
  encoder->add(row_of(2, recovery_action(), "\"b,c\"@test.example", ""), token_of('-'));
  const auto expected = "1,a@test.example,a," + std::string(86, 'x') +
                        ",01234,2,\"\"\"b,c\"\"@test.example\",," + std::string(86, '-') + ",01234\n";
  CHECK(encoder->finish() == expected);
  encoder->begin({8, 1});
  encoder->add(row_of(3, activation_action(), "d@test.example", "d"), token_of('y'));
  CHECK(encoder->finish() == "1,d@test.example,d," + std::string(86, 'y') + ",01234\n");
}

TEST_CASE("a JSONL batch is one object, like this") {
  const auto encoder = compose::make_jsonl_encoder();
  encoder->begin({7, 2, "mail\"room"});
  encoder->add(row_of(1, activation_action(), "a@test.example", "a\\"), token_of('x'));
  encoder->add(row_of(2, recovery_action(), "ü@test.example", ""), token_of('y'));
  const auto expected =
      R"({"batch":7,"queue":"mail\"room","tokens":[)"
      R"({"id":1,"action":"activation","email":"a@test.example","login":"a\\","token":")" +
      std::string(86, 'x') + R"(","code":"01234","expires_at":1700000900},)" +
      R"({"id":2,"action":"password_recovery","email":"ü@test.example","login":"","token":")" +
      std::string(86, 'y') + R"(","code":"01234","expires_at":1700000900}]})" + "\n";
  CHECK(encoder->finish() == expected);
  encoder->begin({8, 1, "mail\"room"});
  CHECK(encoder->finish() == "{\"batch\":8,\"queue\":\"mail\\\"room\",\"tokens\":[]}\n");
}

TEST_CASE("CSV has the number of an action with a path, and no place for one without") {
  const queue::Action magic{.name = "magic_link", .number = 12, .path = "/magic"};
  const auto encoder = compose::make_csv_encoder();
  encoder->begin({7, 1});
  auto row = row_of(1, &magic, "a@test.example", "");
  row.code = "";
  encoder->add(row, token_of('x'));
  CHECK(encoder->finish() == "12,a@test.example,," + std::string(86, 'x') + ",\n");
  encoder->begin({8, 1});
  try {
    encoder->add(row_of(2, message_action(), "a@test.example", ""), {});
    FAIL("it has a line");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    CHECK(error.hint().find("mailroom queue create messages --action message") != std::string::npos);
  }
}

TEST_CASE("JSONL has a message as an object, with any text") {
  const claim::MessageContent content{.id = 4,
                                      .recipients = {"A <a@test.example>"},
                                      .cc = {"b@test.example", "c@test.example"},
                                      .headers = R"({"X-Order": "17"})",
                                      .template_name = "receipt",
                                      .locale = "de-AT",
                                      .data = R"({"total": [1, {"€": "\u202e"}]})",
                                      .subject = "a \"b\"",
                                      .text = "line\n\xff\t",
                                      .reference = "order:17",
                                      .attachments = 2};
  auto row = row_of(1, message_action(), "a@test.example", "");
  row.message = 4;
  row.recipient = 1;
  row.content = &content;
  row.code = "";
  const auto encoder = compose::make_jsonl_encoder();
  encoder->begin({7, 1, "mailroom"});
  encoder->add(row, {});
  const auto line = std::string(encoder->finish());
  CHECK(line.find('\n') == line.size() - 1);
  const auto token = parse_json(line).at("tokens").at(0);
  CHECK(token.at("token") == "");
  const auto& message = token.at("message");
  CHECK(message.at("recipients") == nlohmann::json::array({"A <a@test.example>"}));
  CHECK(message.at("cc").size() == 2);
  CHECK(message.at("headers").at("X-Order") == "17");
  CHECK(message.at("data").at("total").at(0) == 1);
  CHECK(message.at("subject") == "a \"b\"");
  CHECK(message.at("text").get<std::string>().starts_with("line\n"));
  CHECK(message.at("attachments") == 2);
  CHECK_FALSE(message.contains("html"));
  CHECK_FALSE(message.contains("bcc"));
}

TEST_CASE("batches of any printable addresses are read back from both formats, one line each") {
  const auto csv_encoder = compose::make_csv_encoder();
  const auto jsonl_encoder = compose::make_jsonl_encoder();
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<std::string> expected;
    csv_encoder->begin({1, 1});
    jsonl_encoder->begin({1, 1});
    for (auto count = 1 + random() % 5; count > 0; --count) {
      const auto email = random_text(random, ",\"\\/'ab <", 8) + "é@test.example";
      const auto login = random_text(random, ",\"\\{}[]:", 8);
      const auto row = row_of(static_cast<std::int64_t>(count), activation_action(), email, login);
      csv_encoder->add(row, token_of('t'));
      jsonl_encoder->add(row, token_of('t'));
      expected.insert(expected.end(), {"1", email, login, std::string(86, 't'), "01234"});
    }
    const auto line = csv_encoder->finish();
    REQUIRE(line.find('\n') == line.size() - 1);
    REQUIRE(parse_record(line.substr(0, line.size() - 1)) == expected);
    const auto object = jsonl_encoder->finish();
    REQUIRE(object.find('\n') == object.size() - 1);
    std::vector<std::string> read;
    const auto batch = parse_json(object);
    for (const auto& token : batch.at("tokens"))
      read.insert(read.end(),
                  {"1", token.at("email"), token.at("login"), token.at("token"), token.at("code")});
    REQUIRE(read == expected);
  }
}

TEST_CASE("jsonl escapes misleading characters, and no others") {
  const auto encoder = compose::make_jsonl_encoder();
  const auto line_of = [&](const std::string& login) {
    encoder->begin({7, 1});
    encoder->add(row_of(1, activation_action(), "user@test.example", login), token_of('t'));
    return std::string(encoder->finish());
  };
  for (const auto& character : test::misleading_characters()) {
    if (character.size() == 1) continue;  // the signer skips control characters
    const auto line = line_of("\"a" + character);
    CHECK(test::found_misleading(line).empty());
    CHECK(parse_json(line)["tokens"][0]["login"] == "\"a" + character);
  }
  CHECK(line_of("grün 日本 \"\\").find("\"login\":\"grün 日本 \\\"\\\\\"") != std::string::npos);
}

TEST_CASE("a line ends before the message that would make it too long, and only for a message") {
  const auto encoder = compose::make_jsonl_encoder();
  encoder->begin({7, 1, "mailroom"});
  const std::string body(compose::longest_line / 3, 'x');
  const claim::MessageContent message{.id = 5, .recipients = {"a@mail.example"}, .text = body};
  auto row = row_of(1, activation_action(), "a@mail.example", "");
  row.content = &message;
  CHECK(encoder->add(row, ""));
  CHECK(encoder->add(row, ""));
  CHECK_FALSE(encoder->add(row, ""));
  // What is small still fits.
  const auto plain = row_of(2, activation_action(), "b@mail.example", "b");
  CHECK(encoder->add(plain, token_of('x')));
  const auto line = parse_json(encoder->finish());
  REQUIRE(line.at("tokens").size() == 3);
  CHECK(line.at("tokens")[1].at("message").at("text") == body);
  CHECK(line.at("tokens")[2].at("id") == 2);

  // One that is too long for any line has one of its own.
  const std::string large(2 * compose::longest_line, 'x');
  const claim::MessageContent alone{.id = 6, .recipients = {"a@mail.example"}, .text = large};
  row.content = &alone;
  encoder->begin({7, 1, "mailroom"});
  CHECK(encoder->add(row, ""));
  CHECK_FALSE(encoder->add(plain, token_of('x')));
  CHECK(parse_json(encoder->finish()).at("tokens").size() == 1);

  encoder->begin({7, 1, "mailroom"});
  for (int i = 0; i < 2000; ++i)
    REQUIRE(encoder->add(plain, token_of('x')));
  CHECK(encoder->finish().size() > compose::longest_line);
}

}  // namespace mailroom::test::encoder_test
