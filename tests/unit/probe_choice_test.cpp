#include "delivery/probe_choice.hpp"

#include "support/catch.hpp"

namespace mailroom::test::probe_choice_test {
namespace {

constexpr WallTime now{std::chrono::hours(1000)};

delivery::Likeness mail(const std::string& sender, const std::string& kind) {
  return {.sender = sender, .kind = kind};
}

/// How many of `count` such mails in a row are tried.
int tried_of(delivery::ProbeChoice& choice, int count, const delivery::Likeness& likeness) {
  int tried = 0;
  for (int i = 0; i < count; ++i) {
    tried += choice.tries(likeness) ? 1 : 0;
    choice.looked_at(likeness);
  }
  return tried;
}

}  // namespace

TEST_CASE("mails are tried apart by what they have in common with the refused ones") {
  delivery::ProbeChoice choice;
  choice.refused(mail("a", "x"), false, now);
  choice.begin();
  // Thirty, the 32nd and the 64th; none uses up what others have that differ in more.
  for (const auto& each : {mail("a", "x"), mail("a", "y"), mail("b", "y")}) {
    CHECK(choice.tries(each));
    CHECK(tried_of(choice, 100, each) == delivery::ProbeChoice::at_once + 2);
  }
}

TEST_CASE("a mail of a sender that is refused is like his others, whomever it goes to") {
  delivery::ProbeChoice choice;
  choice.refused(mail("a", "x"), true, now);
  choice.begin();
  CHECK(tried_of(choice, 100, mail("a", "y")) == 7);
  CHECK(choice.shortest_wait(mail("a", "y")) > choice.shortest_wait(mail("b", "y")));
  CHECK(choice.tries(mail("b", "x")));
}

TEST_CASE("what was refused while others were accepted is known for some minutes, or until one is accepted") {
  delivery::ProbeChoice choice;
  choice.refused(mail("a", "x"), false, now);
  CHECK_FALSE(choice.are_others_accepted(mail("a", "x"), now));
  choice.accepted(mail("a", "y"));
  CHECK(choice.are_others_accepted(mail("a", "x"), now));
  CHECK_FALSE(choice.are_others_accepted(mail("a", "z"), now));
  CHECK_FALSE(choice.are_others_accepted(mail("a", "x"), now + 2 * delivery::ProbeChoice::kept));
  choice.accepted(mail("a", "x"));
  CHECK_FALSE(choice.are_others_accepted(mail("a", "x"), now));
  choice.refused(mail("b", "x"), true, now);
  choice.accepted(mail("b", "z"));
  CHECK_FALSE(choice.are_others_accepted(mail("b", "x"), now));
}

TEST_CASE("a search ends, and the next one begins anew") {
  delivery::ProbeChoice choice;
  tried_of(choice, delivery::ProbeChoice::longest_search, mail("a", "x"));
  CHECK(choice.is_over());
  choice.begin();
  CHECK_FALSE(choice.is_over());
}

TEST_CASE("of many refused ones the oldest are forgotten") {
  delivery::ProbeChoice choice;
  for (int i = 0; i < 300; ++i)
    choice.refused(mail("a" + std::to_string(i), "x" + std::to_string(i)), false,
                   now + std::chrono::seconds(i));
  choice.accepted(mail("b", "y"));
  CHECK_FALSE(choice.are_others_accepted(mail("a0", "x0"), now));
  CHECK(choice.are_others_accepted(mail("a299", "x299"), now + std::chrono::seconds(299)));
}

}  // namespace mailroom::test::probe_choice_test
