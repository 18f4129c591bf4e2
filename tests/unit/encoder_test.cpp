#include "consumer/encoder.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

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
  append_csv_value(line, value);
  return line;
}

std::string random_text(std::mt19937_64& random, const std::string& alphabet, std::size_t longest) {
  std::string text;
  for (auto length = random() % (longest + 1); length > 0; --length)
    text += alphabet[random() % alphabet.size()];
  return text;
}

TokenText token_of(char c) {
  TokenText token;
  token.fill(c);
  return token;
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
      append_csv_value(record, values.back());
    }
    REQUIRE(parse_record(record) == values);
  }
}

TEST_CASE("a CSV batch is one line of five values for each token, like this") {
  const auto encoder = make_csv_encoder();
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
  const auto encoder = make_jsonl_encoder();
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

TEST_CASE("batches of any printable addresses are read back from both formats, one line each") {
  const auto csv_encoder = make_csv_encoder();
  const auto jsonl_encoder = make_jsonl_encoder();
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
    const auto batch = nlohmann::json::parse(object);
    for (const auto& token : batch.at("tokens"))
      read.insert(read.end(),
                  {"1", token.at("email"), token.at("login"), token.at("token"), token.at("code")});
    REQUIRE(read == expected);
  }
}

TEST_CASE("jsonl escapes misleading characters, and no others") {
  const auto encoder = make_jsonl_encoder();
  const auto line_of = [&](const std::string& login) {
    encoder->begin({7, 1});
    encoder->add(row_of(1, activation_action(), "user@test.example", login), token_of('t'));
    return std::string(encoder->finish());
  };
  for (const auto& character : test::misleading_characters()) {
    if (character.size() == 1) continue;  // the signer skips control characters
    const auto line = line_of("\"a" + character);
    CHECK(test::found_misleading(line).empty());
    CHECK(nlohmann::json::parse(line)["tokens"][0]["login"] == "\"a" + character);
  }
  CHECK(line_of("grün 日本 \"\\").find("\"login\":\"grün 日本 \\\"\\\\\"") != std::string::npos);
}

}  // namespace mailroom::test::encoder_test
