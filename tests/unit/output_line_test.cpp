// Lines of consumers, as reconcile reads them.

#include "reconcile/consumer_output.hpp"
#include "support/catch.hpp"

namespace mailroom::test::output_line_test {

TEST_CASE("a line of CSV has five fields for each token") {
  const auto line =
      reconcile::parse_output_line(R"(1,a@x.example,a,TOKEN,01234,2,"b,""c""@x.example",b,OTHER,99999)");
  REQUIRE(line);
  CHECK_FALSE(line->queue);
  CHECK(line->tokens == std::vector<reconcile::WrittenToken>{{"TOKEN", "01234"}, {"OTHER", "99999"}});
}

TEST_CASE("a line of JSON names its queue") {
  const auto line = reconcile::parse_output_line(
      R"({"batch":1,"queue":"mailroom","tokens":[{"id":1,"token":"TOKEN","code":"01234","email":"a"}]})");
  REQUIRE(line);
  CHECK(line->queue == "mailroom");
  CHECK(line->tokens == std::vector<reconcile::WrittenToken>{{"TOKEN", "01234"}});
}

TEST_CASE("a line that is cut off or of another kind is none") {
  for (const auto* text :
       {"", "1", "1,a,b,TOKEN", "1,a,b,TOKEN,", "1,a,b,TOKEN,1,", "1,a,b,TOKEN,1,1,a", "x,a,b,TOKEN,1",
        "1,\"a,b,TOKEN,1", "1,\"a\"b,c,TOKEN,1", "1,a\"b,c,TOKEN,1", "{", "{}", R"({"queue":"q"})",
        R"({"queue":1,"tokens":[]})", R"({"queue":"q","tokens":[1]})",
        R"({"queue":"q","tokens":[{"token":"T"}]})", R"({"queue":"q","tokens":[{"token":"T","code":"1"})"}) {
    INFO(text);
    const auto line = reconcile::parse_output_line(text);
    // A code may be cut off: then the token is there.
    CHECK((!line || std::string(text) == "1,a,b,TOKEN,"));
  }
}

}  // namespace mailroom::test::output_line_test
