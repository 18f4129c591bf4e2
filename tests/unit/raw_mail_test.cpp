// What is read of a mail that its program has made.

#include "mail/raw_mail.hpp"

#include <string>

#include "messages/raw_text.hpp"
#include "support/catch.hpp"

namespace mailroom::test::raw_mail_test {

TEST_CASE("a field of a raw mail is found in its header alone, in any case, with its folded lines") {
  const std::string mail =
      "X-One: 1\r\nsubject : a\r\n b\r\nSubject: second\r\n\r\nFrom: body@shop.example\r\n";
  CHECK(mail::raw_field(mail, "subject") == " a\r\n b\r\n");
  CHECK(mail::raw_field(mail, "x-one") == " 1\r\n");
  CHECK(mail::raw_field(mail, "from").empty());
  CHECK(mail::raw_field("\r\nSubject: x\r\n", "subject").empty());
  CHECK(mail::raw_field("", "subject").empty());
  CHECK(mail::raw_field("Subject: no line end", "subject") == " no line end");
  CHECK(mail::raw_field("Subject", "subject").empty());
  CHECK(mail::subject_of_raw_mail(mail) == "a b");
  CHECK(mail::subject_of_raw_mail("Subject: =?utf-8?b?R3LDvMOfZQ==?=\r\n\r\n") == "Gr\u00fc\u00dfe");
  CHECK(mail::subject_of_raw_mail("Subject: cut =?utf-8?b?R3LD").starts_with("cut"));
}

TEST_CASE("what a raw mail needs of its relay is known by its octets") {
  const auto facts = [](const std::string& mail) {
    const auto read = mail::facts_of_raw_mail(mail);
    return read.author + " " + read.message_id + (read.has_8bit ? " 8bit" : "") +
           (read.has_utf8_header ? " utf8" : "");
  };
  CHECK(facts("From: \"A <x>\" <a@shop.example>, b@shop.example\r\nMessage-ID:\r\n <1@x>\r\n\r\nx")
            .ends_with(" 1@x"));
  CHECK(facts("From: Shop <a@shop.example>, b@shop.example\r\n\r\nx") == "a@shop.example ");
  CHECK(facts("From: a@shop.example\r\n\r\n\xc3\xb6") == "a@shop.example  8bit");
  CHECK(facts("From: a@shop.example\r\nSubject: \xc3\xb6\r\n\r\nx") == "a@shop.example  8bit utf8");
  CHECK(facts("From: a@shop.example\r\nSubject: \xf6\r\n\r\nx") == "a@shop.example  8bit");
}

TEST_CASE("an address is found wherever a mail shows it, and not in a longer one") {
  const auto names = [](const std::string& mail) {
    return messages::mentions(messages::text_of_raw_mail(mail), {"ada@mail.example"});
  };
  CHECK(names("From: a@b.example\r\nTo: Ada <ADA@mail.example>\r\n\r\nx\r\n"));
  CHECK(names("From: a@b.example\r\nX-Odd: ada@mail.example\r\n\r\nx\r\n"));
  CHECK(names("From: a@b.example\r\nSubject: =?utf-8?q?for_ada=40mail=2Eexample?=\r\n\r\nx\r\n"));
  CHECK(names(
      "From: a@b.example\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nada=40mail.ex=\r\nample.\r\n"));
  CHECK(
      names("From: a@b.example\r\nContent-Type: application/json\r\nContent-Transfer-Encoding: "
            "base64\r\n\r\nWyJhZGFAbWFpbC5leGFtcGxlIl0=\r\n"));
  CHECK(
      names("From: a@b.example\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: "
            "message/rfc822\r\n\r\nTo: ada@mail.example\r\n\r\nx\r\n--b\r\nContent-Type: "
            "application/pdf\r\n\r\nx\r\n--b--\r\n"));
  CHECK(names(
      "From: a@b.example\r\nContent-Type: application/pdf; name=\"ada@mail.example.pdf\"\r\n\r\nx\r\n"));
  CHECK_FALSE(names("From: a@b.example\r\n\r\nxada@mail.example ada@mail.examples b.ada@mail.example\r\n"));
  CHECK_FALSE(names("From: a@b.example\r\n\r\n\u00f6ada@mail.example\r\n"));
}

}  // namespace mailroom::test::raw_mail_test
