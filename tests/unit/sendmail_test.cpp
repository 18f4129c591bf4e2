// What mailroom sendmail makes of arguments, of a text and of aliases.

#include "base/error.hpp"
#include "base/text.hpp"
#include "sendmail/address_list.hpp"
#include "sendmail/aliases.hpp"
#include "sendmail/arguments.hpp"
#include "sendmail/mail_text.hpp"
#include "support/catch.hpp"

namespace mailroom::test::sendmail_test {
namespace {

const sendmail::Caller ada{
    .user = "ada", .name = "Ada \"A\"", .host = "web1", .now = Moment{}, .random = "r"};

std::string shown(const std::vector<std::string>& given) {
  const auto arguments = sendmail::parse_arguments(given);
  return std::to_string(static_cast<int>(arguments.mode)) + (arguments.reads_recipients ? " -t" : "") +
         (arguments.ends_at_dot ? "" : " -i") + (arguments.sender ? " -f" + *arguments.sender : "") +
         (arguments.name.empty() ? "" : " -F" + arguments.name) + " " + joined(arguments.recipients, " ");
}

std::string made(const std::string& text, const std::vector<std::string>& given) {
  const auto mail = sendmail::make_mail(sendmail::parse_arguments(given), text, ada);
  return mail.sender + ">" + joined(mail.recipients, ",") + "|" + mail.text;
}

const std::string missing = "Date: Thu, 01 Jan 1970 00:00:00 +0000\r\nMessage-ID: <r@web1>\r\n";

}  // namespace

TEST_CASE("the options of sendmail are taken as programs write them") {
  CHECK(shown({"-t", "-i"}) == "0 -t -i ");
  CHECK(shown({"-ti", "ada@x.example"}) == "0 -t -i ada@x.example");
  CHECK(shown({"-FCronDaemon", "-i", "-odi", "-oem", "-oi", "-t", "-f", "root"}) ==
        "0 -t -i -froot -FCronDaemon ");
  CHECK(shown({"-fada@x.example", "-F", "Ada L", "-B", "8BITMIME", "-N", "never", "-O", "IgnoreDots", "--",
               "-x@x.example"}) == "0 -i -fada@x.example -FAda L -x@x.example");
  CHECK(shown({"-f", "<>", "-bm", "a", "-t"}) == "0 -f a -t");
  CHECK(shown({"-bs"}) == "1 ");
  CHECK(shown({"-bp"}) == "2 ");
  CHECK(shown({"-bi"}) == "3 ");
  CHECK(shown({"-q15m"}) == "3 ");
  for (const auto& given :
       std::vector<std::vector<std::string>>{{"-Q"}, {"--to=x"}, {"-tQ"}, {"-f"}, {"-bd"}, {"-bz"}})
    CHECK_THROWS_AS(sendmail::parse_arguments(given), Error);
}

TEST_CASE("a text gets the line ends of SMTP, once, and ends where it says") {
  CHECK(sendmail::with_line_ends("a\nb\r\nc\r\r\nd\re", false) == "a\r\nb\r\nc\r\nd\r\ne\r\n");
  CHECK(sendmail::with_line_ends("From ada Sat\nA: b\n\nFrom here\n", false) == "A: b\r\n\r\nFrom here\r\n");
  CHECK(sendmail::with_line_ends("a\n..\n.\nb\n", true) == "a\r\n..\r\n");
  CHECK(sendmail::with_line_ends("a\n.\nb", false) == "a\r\n.\r\nb\r\n");
  CHECK(sendmail::with_line_ends("", true).empty());
}

TEST_CASE("a mail gets what its header lacks, and those of -t") {
  CHECK(made("Hi\n", {"root"}) == "ada>root|From: \"Ada \\\"A\\\"\" <ada>\r\n" + missing + "\r\nHi\r\n");
  CHECK(made("From: x@x.example\nDate: d\nMessage-ID: <m>\n\nHi\n",
             {"-f", "y@x.example", "a@x.example, B <b@x.example>", "a@x.example"}) ==
        "y@x.example>a@x.example,b@x.example|From: x@x.example\r\nDate: d\r\nMessage-ID: <m>\r\n\r\nHi\r\n");
  CHECK(made("From: x\nTo: a@x.example,\n b@x.example\nCc: undisclosed:;\nBcc: \"c, d\" <c@x.example>\n\n",
             {"-t", "-f", ""})
            .find(">a@x.example,b@x.example,c@x.example|" + missing) == 0);
  CHECK(made("To: a@x.example\nResent-To: b@x.example\n\n", {"-t"}).find("ada>b@x.example|") == 0);
  CHECK(made("\nbody\n", {"-F", "", "a"}).find("\r\n\r\nbody\r\n") != std::string::npos);
  CHECK_THROWS_AS(made("To: undisclosed-recipients:;\n\n", {"-t"}), Error);
  CHECK_THROWS_AS(made("x", {"a b@x.example>"}), Error);
  CHECK_THROWS_AS(made("x", {"-f", "a\nb", "a"}), Error);
}

TEST_CASE("aliases are followed for those without a domain, and end") {
  const sendmail::Aliases aliases(
      "# c\nroot: ada@x.example,\n\tops\nOps: \"bob@x.example\" , Root\nself: self, carl@x.example\nlog: |/bin/cat\nlist: :include:/l\nempty:\nbad line\n");
  const auto resolved = [&](const std::vector<std::string>& recipients) {
    return joined(aliases.resolved(recipients), " ");
  };
  CHECK(resolved({"ROOT@web1", "ada@x.example"}) == "ada@x.example bob@x.example Root");
  CHECK(resolved({"self", "else", "root@x.example"}) == "self carl@x.example else root@x.example");
  CHECK_THROWS_AS(aliases.resolved({"log"}), Error);
  CHECK_THROWS_AS(aliases.resolved({"list"}), Error);
  CHECK(sendmail::Aliases().resolved({"root"}) == std::vector<std::string>{"root"});
}

}  // namespace mailroom::test::sendmail_test
