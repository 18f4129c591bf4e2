#include "cmd/terminal/context.hpp"
#include "support/catch.hpp"

namespace mailroom::test::confirm_test {

TEST_CASE("yes is accepted in either case, and with surrounding blanks") {
  for (const auto* answer : {"y", "Y", "yes", "YES", "Yes", "y ", " y", "\tyes \t", "YES\r"}) {
    INFO(answer);
    CHECK(cmd::is_yes(answer));
  }
}

TEST_CASE("any other answer is no") {
  for (const auto* answer :
       {"", " ", "n", "no", "ye", "yess", "y es", "y n", "yes please", "j", "1", "\ny"}) {
    INFO(answer);
    CHECK_FALSE(cmd::is_yes(answer));
  }
}

}  // namespace mailroom::test::confirm_test
