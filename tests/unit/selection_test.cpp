#include "selection/selection.hpp"

#include "base/error.hpp"
#include "base/json.hpp"
#include "support/catch.hpp"

namespace mailroom::test::selection_test {
namespace {

Selection everything() {
  return {.actions = {"activation"},
          .accounts = {3, 5},
          .outcomes = {Outcome::rejected},
          .codes = {{550, 550}, {400, 499}},
          .batches = {7},
          .consumers = {"send@host"},
          .keys = {"0eae0c88ac3a5e1a"},
          .since = Moment(std::chrono::seconds(100)),
          .until = Moment(std::chrono::seconds(200)),
          .tokens = std::vector<IdRange>{{1, 3}}};
}

}  // namespace

TEST_CASE("a selection without selectors is empty, and has no clause") {
  CHECK(Selection().empty());
  CHECK(Selection().parameter() == "{}");
  CHECK(Selection().condition("$1", "$2") == " AND $1::jsonb IS NOT NULL");
  CHECK_FALSE(everything().empty());
  CHECK_FALSE(Selection{.tokens = std::vector<IdRange>{}}.empty());
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
  CHECK(Selection().wants(Outcome::missed));
  const Selection expired{.outcomes = {Outcome::expired}};
  CHECK(expired.wants(Outcome::expired));
  CHECK(expired.wants(Outcome::skipped, true));
  CHECK_FALSE(expired.wants(Outcome::skipped));
  CHECK_FALSE(expired.wants(Outcome::accepted, true));
  CHECK(Selection{.outcomes = {Outcome::skipped}}.wants(Outcome::skipped, true));
}

TEST_CASE("outcomes and codes are read as they are written") {
  CHECK(parse_outcome("--outcome", "emitted again") == Outcome::emitted_again);
  CHECK(parse_outcome("--outcome", "emitted-again") == Outcome::emitted_again);
  CHECK_THROWS_AS(parse_outcome("--outcome", "reject"), Error);
  CHECK(outcome_words().size() == outcome_count);
  CHECK(parse_code("--code", "550") == CodeRange{550, 550});
  CHECK(parse_code("--code", "5xx") == CodeRange{500, 599});
  for (const auto* text : {"", "55", "5500", "6xx", "xxx", "-50", "5.1.1"})
    CHECK_THROWS_AS(parse_code("--code", text), Error);
}

TEST_CASE("the fingerprint of a key is read as it is shown") {
  CHECK(parse_key_fingerprint("--key", "0eae0c88ac3a5e1a") == "0eae0c88ac3a5e1a");
  CHECK(parse_key_fingerprint("--key", "0EAE0C88AC3A5E1A") == "0eae0c88ac3a5e1a");
  for (const auto* text : {"", "0eae", "0eae0c88ac3a5e1a0", "0eae0c88ac3a5e1g"})
    CHECK_THROWS_AS(parse_key_fingerprint("--key", text), Error);
}

TEST_CASE("a list is split at its commas, but not a name with a prefix") {
  CHECK(split_list("a,b, c") == std::vector<std::string>{"a", "b", "c"});
  CHECK(split_list("login:a,b") == std::vector<std::string>{"login:a,b"});
}

}  // namespace mailroom::test::selection_test
