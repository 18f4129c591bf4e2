#include "mail/redirection.hpp"

#include <vector>

#include "support/catch.hpp"

namespace mailroom::test::redirection_test {
namespace {

mail::Address address(const std::string& text) {
  return std::get<mail::Address>(mail::parse_address(text));
}

/// Where a mail for `recipient` goes; `-` for nowhere.
std::string destination(const mail::Redirection& redirection, const std::string& recipient) {
  const auto found = redirection.destination_of(address(recipient));
  return found ? found->text() : "-";
}

}  // namespace

TEST_CASE("a mail goes to its recipient, to the address of a staging system, or nowhere") {
  struct Row {
    std::string to;
    std::vector<std::string> allowed;
    std::string recipient;
    std::string expected;
  };
  const std::vector<Row> rows{
      {"", {}, "ada@x.example", "ada@x.example"},
      {"dev@y.example", {}, "ada@x.example", "dev@y.example"},
      {"dev@y.example", {"ada@x.example"}, "ada@x.example", "ada@x.example"},
      {"dev@y.example", {"Ada@X.Example"}, "ada@x.example", "ada@x.example"},
      {"dev@y.example", {"ada@x.example"}, "ADA@x.example", "ADA@x.example"},
      {"dev@y.example", {"ada@x.example"}, "bo@x.example", "dev@y.example"},
      {"dev@y.example", {"@x.example"}, "bo@x.example", "bo@x.example"},
      {"dev@y.example", {"@x.example"}, "bo@sub.x.example", "dev@y.example"},
      {"dev@y.example", {"@x.example"}, "bo@ax.example", "dev@y.example"},
      {"dev@y.example", {"@bücher.example"}, "bo@xn--bcher-kva.example", "bo@xn--bcher-kva.example"},
      {"", {"@x.example"}, "bo@x.example", "bo@x.example"},
      {"", {"@x.example"}, "bo@z.example", "-"},
      {"", {"ada@x.example"}, "ada@x.example.z.example", "-"},
  };
  for (const auto& row : rows) {
    INFO(row.to << " " << row.recipient);
    mail::Redirection redirection;
    if (!row.to.empty()) redirection.redirect_to(address(row.to));
    for (const auto& entry : row.allowed)
      CHECK_FALSE(redirection.allow(entry));
    CHECK(destination(redirection, row.recipient) == row.expected);
    CHECK(redirection.changes_nothing() == (row.to.empty() && row.allowed.empty()));
  }
}

TEST_CASE("what is neither an address nor a domain after an @ is not allowed") {
  for (const auto* entry : {"", "@", "x.example", "@x", "a b@x.example", "*@x.example,", "@a@x.example"}) {
    INFO(entry);
    mail::Redirection redirection;
    CHECK(redirection.allow(entry));
    CHECK(redirection.changes_nothing());
  }
}

}  // namespace mailroom::test::redirection_test
