// Lists of addresses to suppress, as providers and spreadsheets write them.

#include "suppression/address_list.hpp"

#include <sstream>

#include "base/error.hpp"
#include "support/catch.hpp"

namespace mailroom::test::address_list_test {
namespace {

/// The addresses of a text, separated by blanks.
std::string read(const std::string& text) {
  suppression::AddressList list;
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    for (const auto& [address, topic] : list.read(line))
      all += (all.empty() ? "" : " ") + address + (topic.empty() ? "" : "/" + topic);
  }
  return list.rest().empty() ? all : all + " and more";
}

}  // namespace

TEST_CASE("a list of addresses is read as other programs write it") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"a@b.example\nc@d.example\n", "a@b.example c@d.example"},
      // Excel: a mark, the end of lines, and its separator in some countries.
      {"\xef\xbb\xbf"
       "a@b.example\r\nc@d.example\r\n",
       "a@b.example c@d.example"},
      {"\xef\xbb\xbf"
       "Name;E-Mail\r\n\"Ada; x\";a@b.example\r\n",
       "a@b.example"},
      {"name\temail\nAda\ta@b.example\n", "a@b.example"},
      // SendGrid, Mailchimp, and one without a name that is known.
      {"status,reason,email,created\n5.1.1,\"unknown, gone\",a@b.example,1\n", "a@b.example"},
      {"\"Email Address\",\"First Name\"\n\"a@b.example\",\"Ada\"\n", "a@b.example"},
      {"who,when\na@b.example,1\n", "a@b.example"},
      {"a@b.example,\"x \"\"y\"\"\"\n\n", "a@b.example"},
      // aws sesv2 list-suppressed-destinations
      {"{\n  \"SuppressedDestinationSummaries\": [\n    {\n      \"EmailAddress\": \"a@b.example\",\n"
       "      \"Reason\": \"BOUNCE\"\n    },\n    {\"EmailAddress\": \"c@d.example\"}\n  ]\n}\n",
       "a@b.example c@d.example"},
      {"[{\"created\":1,\"email\":\"a@b.example\"}]\n", "a@b.example"},
      // Our own.
      {"{\"address\":\"a@b.example\",\"reason\":\"5.1.1\"}\n{\"address\":\"c@d.example\"}\n",
       "a@b.example c@d.example"},
      {"{\"address\":\"a@b.example\",\"topic\":\"news\"}\n{\"address\":\"a@b.example\",\"topic\":null}\n",
       "a@b.example/news a@b.example"},
      {"{\"address\":\n", " and more"},
      {"", ""},
  };
  for (const auto& [text, addresses] : rows) {
    INFO(text);
    CHECK(read(text) == addresses);
  }
}

TEST_CASE("JSON that does not end is not kept for ever") {
  suppression::AddressList list;
  list.read("[");
  const std::string part(1U << 20U, ' ');
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 100; ++i)
          list.read("1," + part + "1,");
      }(),
      Error);
}

}  // namespace mailroom::test::address_list_test
