#include "selection/selection.hpp"

#include "base/error.hpp"
#include "base/json.hpp"
#include "support/catch.hpp"

namespace mailroom::test::selection_test {
namespace {

selection::Selection everything() {
  return {.actions = {"activation"},
          .accounts = {3, 5},
          .outcomes = {fate::Outcome::rejected},
          .codes = {{550, 550}, {400, 499}},
          .batches = {7},
          .consumers = {"send@host"},
          .keys = {"0eae0c88ac3a5e1a"},
          .since = Moment(std::chrono::seconds(100)),
          .until = Moment(std::chrono::seconds(200)),
          .tokens = std::vector<selection::IdRange>{{1, 3}}};
}

}  // namespace

TEST_CASE("a selection without selectors is empty, and has no clause") {
  CHECK(selection::Selection().empty());
  CHECK(selection::Selection().parameter() == "{}");
  CHECK(selection::Selection().condition("$1", "$2") == " AND $1::jsonb IS NOT NULL");
  CHECK_FALSE(everything().empty());
  CHECK_FALSE(selection::Selection{.tokens = std::vector<selection::IdRange>{}}.empty());
}

TEST_CASE("the values of a selection are one parameter") {
  CHECK(parse_json(everything().parameter()) == nlohmann::json{{"actions", {"activation"}},
                                                               {"accounts", {3, 5}},
                                                               {"outcomes", {"rejected"}},
                                                               {"codes", "{[550,550],[400,499]}"},
                                                               {"batches", {7}},
                                                               {"consumers", {"send@host"}},
                                                               {"keys", {"0eae0c88ac3a5e1a"}},
                                                               {"since", 100},
                                                               {"until", 200},
                                                               {"tokens", "{[1,3)}"}});
}

TEST_CASE("a clause holds no value, and names the parameter and the queue") {
  const auto sql = everything().condition("$8", "$9");
  for (const auto* value : {"550", "send@host", "0eae0c88ac3a5e1a", "activation", "100"})
    CHECK(sql.find(value) == std::string::npos);
  CHECK(sql.find("e.queue = $9") != std::string::npos);
  CHECK(sql.find("b.queue = $9") != std::string::npos);
}

TEST_CASE("an outcome is wanted by its word, and one that expired unsent by two") {
  CHECK(selection::Selection().wants(fate::Outcome::missed));
  const selection::Selection expired{.outcomes = {fate::Outcome::expired}};
  CHECK(expired.wants(fate::Outcome::expired));
  CHECK(expired.wants(fate::Outcome::skipped, true));
  CHECK_FALSE(expired.wants(fate::Outcome::skipped));
  CHECK_FALSE(expired.wants(fate::Outcome::accepted, true));
  CHECK(selection::Selection{.outcomes = {fate::Outcome::skipped}}.wants(fate::Outcome::skipped, true));
}

TEST_CASE("outcomes and codes are read as they are written") {
  CHECK(selection::parse_outcome("--outcome", "emitted again") == fate::Outcome::emitted_again);
  CHECK(selection::parse_outcome("--outcome", "emitted-again") == fate::Outcome::emitted_again);
  CHECK_THROWS_AS(selection::parse_outcome("--outcome", "reject"), Error);
  CHECK(selection::outcome_words().size() == fate::outcome_count);
  CHECK(selection::parse_code("--code", "550") == selection::CodeRange{550, 550});
  CHECK(selection::parse_code("--code", "5xx") == selection::CodeRange{500, 599});
  for (const auto* text : {"", "55", "5500", "6xx", "xxx", "-50", "5.1.1"})
    CHECK_THROWS_AS(selection::parse_code("--code", text), Error);
}

TEST_CASE("the fingerprint of a key is read as it is shown") {
  CHECK(selection::parse_key_fingerprint("--key", "0eae0c88ac3a5e1a") == "0eae0c88ac3a5e1a");
  CHECK(selection::parse_key_fingerprint("--key", "0EAE0C88AC3A5E1A") == "0eae0c88ac3a5e1a");
  for (const auto* text : {"", "0eae", "0eae0c88ac3a5e1a0", "0eae0c88ac3a5e1g"})
    CHECK_THROWS_AS(selection::parse_key_fingerprint("--key", text), Error);
}

TEST_CASE("a list is split at its commas, but not a name with a prefix") {
  CHECK(selection::split_list("a,b, c") == std::vector<std::string>{"a", "b", "c"});
  CHECK(selection::split_list("login:a,b") == std::vector<std::string>{"login:a,b"});
}

}  // namespace mailroom::test::selection_test
