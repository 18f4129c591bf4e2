#include "base/error.hpp"
#include "mail/message.hpp"
#include "support/catch.hpp"
#include "support/parsed_message.hpp"
#include "support/random_mail.hpp"

namespace mailroom::test::mail_message_test {
namespace {

const mail::Mailbox sender{"Example", {"no-reply", "app.example"}};
const mail::Address recipient{"user1", "mail.example"};

std::string built(const mail::MessageBuilder& builder, const mail::MailContent& content) {
  auto message = builder.build(content);
  if (const auto* refusal = std::get_if<mail::Refusal>(&message)) return "refused: " + refusal->reason;
  return std::get<std::string>(std::move(message));
}

std::string encoded(const std::string& text) {
  std::string out;
  mail::append_quoted_printable(out, text);
  return out;
}

std::string text_header(const std::string& value) {
  std::string out;
  mail::append_text_header(out, "Subject", value);
  return out;
}

std::string id_of(const std::string& queue, std::int64_t token) {
  return mail::make_message_id({.queue = queue, .key = "k", .token = token}, "b.example");
}

std::string mailbox_header(const std::string& name) {
  std::string out;
  mail::append_mailboxes_header(out, "From", {{name, {"a", "b.example"}}});
  return out;
}

}  // namespace

TEST_CASE("a message is exactly this") {
  const mail::MessageBuilder builder(sender, {{"", {"help", "app.example"}}}, {{"X-Tag", "a b"}});
  const mail::MailContent content{.date = Moment(std::chrono::seconds(1'795'253'415)),
                                  .queue = "mailroom",
                                  .key = "0123456789abcdef",
                                  .token = 42,
                                  .to = {{"", recipient}},
                                  .subject = "Activate your account",
                                  .text = "Hello\n\n.dot = \xc3\xbc\n",
                                  .html = "<p>Hello</p>"};
  CHECK(built(builder, content) ==
        "Date: Sat, 21 Nov 2026 09:30:15 +0000\r\n"
        "From: Example <no-reply@app.example>\r\n"
        "To: user1@mail.example\r\n"
        "Reply-To: help@app.example\r\n"
        "Subject: Activate your account\r\n"
        "Message-ID: <mailroom.0123456789abcdef.42.mailroom@app.example>\r\n"
        "Auto-Submitted: auto-generated\r\n"
        "X-Auto-Response-Suppress: All\r\n"
        "MIME-Version: 1.0\r\n"
        "X-Tag: a b\r\n"
        "Content-Type: multipart/alternative; boundary=\"=_2031d123480ce6b4\"\r\n"
        "\r\n"
        "--=_2031d123480ce6b4\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n"
        "\r\n"
        "Hello\r\n"
        "\r\n"
        "=2Edot =3D =C3=BC\r\n"
        "\r\n"
        "--=_2031d123480ce6b4\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n"
        "\r\n"
        "<p>Hello</p>\r\n"
        "\r\n"
        "--=_2031d123480ce6b4--\r\n");
}

TEST_CASE("without HTML a message has one part") {
  const mail::MessageBuilder builder({"", {"a", "b.example"}}, {}, {});
  CHECK(built(builder, {.queue = "q", .key = "k", .to = {{"", recipient}}, .subject = "", .text = "x"}) ==
        "Date: Thu, 01 Jan 1970 00:00:00 +0000\r\n"
        "From: a@b.example\r\n"
        "To: user1@mail.example\r\n"
        "Subject: \r\n"
        "Message-ID: <q.k.0.mailroom@b.example>\r\n"
        "Auto-Submitted: auto-generated\r\n"
        "X-Auto-Response-Suppress: All\r\n"
        "MIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n"
        "\r\n"
        "x\r\n");
}

TEST_CASE("the id of a message tells queues and tokens apart") {
  CHECK(id_of("mailroom", 7) == "mailroom.k.7.mailroom@b.example");
  CHECK(id_of("a b.1", 2) == "a=20b=2E1.k.2.mailroom@b.example");
  CHECK(id_of("a b", 12) == "a=20b.k.12.mailroom@b.example");
  CHECK(id_of("a=20b", 12) == "a=3D20b.k.12.mailroom@b.example");
  CHECK(id_of(">\r\n\xc3\xbc@", -1) == "=3E=0D=0A=C3=BC=40.k.-1.mailroom@b.example");
}

TEST_CASE("a date is in UTC and in English, whatever the time") {
  CHECK(mail::date_header_text(bounded_moment(std::chrono::seconds(0))) == "Thu, 01 Jan 1970 00:00:00 +0000");
  CHECK(mail::date_header_text(bounded_moment(std::chrono::seconds(951'827'696))) ==
        "Tue, 29 Feb 2000 12:34:56 +0000");
  CHECK(mail::date_header_text(bounded_moment(std::chrono::seconds(253'402'300'799))) ==
        "Fri, 31 Dec 9999 23:59:59 +0000");
  CHECK(mail::date_header_text(bounded_moment(std::chrono::seconds(253'402'300'800))) ==
        mail::date_header_text(bounded_moment(std::chrono::seconds(253'402'300'799))));
  CHECK(mail::date_header_text(
            bounded_moment(std::chrono::seconds(std::numeric_limits<std::int64_t>::max()))) ==
        mail::date_header_text(bounded_moment(std::chrono::seconds(253'402'300'799))));
  CHECK(mail::date_header_text(bounded_moment(std::chrono::seconds(-1))) ==
        mail::date_header_text(bounded_moment(std::chrono::seconds(0))));
  CHECK(mail::date_header_text(
            bounded_moment(std::chrono::seconds(std::numeric_limits<std::int64_t>::min()))) ==
        mail::date_header_text(bounded_moment(std::chrono::seconds(0))));
}

TEST_CASE("quoted-printable keeps lines short, and hides what servers change") {
  CHECK(encoded("") == "\r\n");
  CHECK(encoded("a") == "a\r\n");
  CHECK(encoded("a\n") == "a\r\n");
  CHECK(encoded("a\r\nb\n\n") == "a\r\nb\r\n\r\n");
  CHECK(encoded("a\rb\r") == "a=0Db=0D\r\n");
  CHECK(encoded("a \nb\t\n c ") == "a=20\r\nb=09\r\n c=20\r\n");
  CHECK(encoded("a \r\n") == "a=20\r\n");
  CHECK(encoded("=\x7f\x01") == "=3D=7F=01\r\n");
  CHECK(encoded(std::string(1, '\0')) == "=00\r\n");
  CHECK(encoded(".\n..\na.") == "=2E\r\n=2E.\r\na.\r\n");
  CHECK(encoded("From a\nFrom: b\n From c") == "=46rom a\r\nFrom: b\r\n From c\r\n");
  for (const std::string end : {"", "\n", "\r\n"}) {
    CHECK(encoded(std::string(76, 'x') + end) == std::string(76, 'x') + "\r\n");
    CHECK(encoded(std::string(73, 'x') + "=" + end) == std::string(73, 'x') + "=3D\r\n");
    CHECK(encoded(std::string(74, 'x') + "=" + end) == std::string(74, 'x') + "=\r\n=3D\r\n");
  }
  CHECK(encoded(std::string(77, 'x')) == std::string(75, 'x') + "=\r\nxx\r\n");
  CHECK(encoded(std::string(75, 'x') + ".a") == std::string(75, 'x') + "=\r\n=2Ea\r\n");
  CHECK(encoded(std::string(73, 'x') + "\xc3\xbc") == std::string(73, 'x') + "=\r\n=C3=BC\r\n");
}

TEST_CASE("a subject is folded or encoded, and never above 76 columns") {
  CHECK(text_header("") == "Subject: \r\n");
  CHECK(text_header("Reset your password") == "Subject: Reset your password\r\n");
  CHECK(text_header("gr\u00fc\u00df dich") == "Subject: =?utf-8?Q?gr=C3=BC=C3=9F_dich?=\r\n");
  CHECK(text_header("=?utf-8?Q?x?=") == "Subject: =?utf-8?Q?=3D=3Futf-8=3FQ=3Fx=3F=3D?=\r\n");
  CHECK(text_header(" a") == "Subject: =?utf-8?Q?_a?=\r\n");
  CHECK(text_header("a ") == "Subject: =?utf-8?Q?a_?=\r\n");
  CHECK(text_header("a  b") == "Subject: =?utf-8?Q?a__b?=\r\n");
  const std::string x(67, 'x');
  CHECK(text_header(x) == "Subject: " + x + "\r\n");
  CHECK(text_header(x + "y") == "Subject: =?utf-8?Q?" + std::string(55, 'x') + "?=\r\n =?utf-8?Q?" +
                                    std::string(12, 'x') + "y?=\r\n");
  CHECK(text_header(x + " yy zz") == "Subject: " + x + "\r\n yy zz\r\n");
  // Whole characters in each word: 15 columns remain, and an emoji takes 12 of them and its end 2.
  CHECK(text_header(std::string(44, 'x') + "\U0001f600") ==
        "Subject: =?utf-8?Q?" + std::string(44, 'x') + "?=\r\n =?utf-8?Q?=F0=9F=98=80?=\r\n");
}

TEST_CASE("a display name is written as its characters allow") {
  CHECK(mailbox_header("") == "From: a@b.example\r\n");
  CHECK(mailbox_header("Example Team") == "From: Example Team <a@b.example>\r\n");
  CHECK(mailbox_header("Example, Inc.") == "From: \"Example, Inc.\" <a@b.example>\r\n");
  CHECK(mailbox_header("a \"b\" \\c") == "From: \"a \\\"b\\\" \\\\c\" <a@b.example>\r\n");
  CHECK(mailbox_header("<x@y.example>,") == "From: \"<x@y.example>,\" <a@b.example>\r\n");
  CHECK(mailbox_header("B\u00fccher") == "From: =?utf-8?Q?B=C3=BCcher?= <a@b.example>\r\n");
  CHECK(mailbox_header("=?utf-8?Q?x?=") == "From: =?utf-8?Q?=3D=3Futf-8=3FQ=3Fx=3F=3D?= <a@b.example>\r\n");
  CHECK(mailbox_header(std::string(60, 'x')) == "From: " + std::string(60, 'x') + "\r\n <a@b.example>\r\n");
  CHECK(mailbox_header(std::string(61, 'x')) ==
        "From: =?utf-8?Q?" + std::string(58, 'x') + "?=\r\n =?utf-8?Q?xxx?= <a@b.example>\r\n");
}

TEST_CASE("nothing can end a header early") {
  const mail::MessageBuilder builder(sender, {}, {});
  const std::string lf = "refused: the subject has a line end or another control character";
  for (const std::string end : {"\r\n", "\n", "\r", "\t", "\x7f"})
    CHECK(built(builder,
                {.queue = "q", .to = {{"", recipient}}, .subject = "a" + end + "Bcc: x@y", .text = ""}) ==
          lf);
  const std::string nul("a\0b", 3);
  CHECK(built(builder, {.queue = "q", .to = {{"", recipient}}, .subject = nul, .text = ""}) == lf);
  CHECK(built(builder, {.queue = "q", .to = {{"", recipient}}, .subject = "a\xff", .text = ""}) ==
        "refused: the subject is not valid UTF-8");
  CHECK(built(builder, {.queue = "q", .to = {{"", recipient}}, .subject = "a", .text = "\xff"}) ==
        "refused: the text is not valid UTF-8");
  CHECK(built(builder, {.queue = "q", .to = {{"", recipient}}, .subject = "a", .text = "", .html = "\xff"}) ==
        "refused: the HTML is not valid UTF-8");
  CHECK(
      built(builder, {.queue = std::string(64, 'q'), .to = {{"", recipient}}, .subject = "a", .text = ""}) ==
      "refused: the queue's name has 64 octets, at most 63 are allowed");
  const mail::Address forged{"a\r\nBcc: x", "y.example"};
  CHECK(built(builder, {.queue = "q", .to = {{"", forged}}, .subject = "a", .text = ""}) ==
        "refused: the address has a control character or invalid UTF-8");
  const auto is_refused = [](const mail::Mailbox& from, const std::vector<mail::Mailbox>& reply_to,
                             const std::vector<mail::ExtraHeader>& headers) {
    try {
      const mail::MessageBuilder refused(from, reply_to, headers);
      return false;
    } catch (const Error& error) {
      return error.code() == ExitCode::configuration;
    }
  };
  CHECK(is_refused({"a\nb", recipient}, {}, {}));
  CHECK(is_refused({"", forged}, {}, {}));
  CHECK(is_refused(sender, {{"", recipient}, {"a\nb", recipient}}, {}));
  CHECK(is_refused(sender, {}, {{"X", "a\r\nBcc: x@y"}}));
  CHECK(is_refused(sender, {}, {{"X: a\r\nBcc", "x@y"}}));
}

TEST_CASE("answers go to each address that is named for them") {
  const mail::Address desk{"desk", "app.example"};
  const mail::MessageBuilder builder(sender, {{"Help", recipient}, {"", desk}}, {});
  mail::MailContent content{.queue = "q", .key = "k", .to = {{"", recipient}}, .subject = "s", .text = "t"};
  CHECK(built(builder, content).find("\r\nReply-To: Help <user1@mail.example>,\r\n desk@app.example\r\n") !=
        std::string::npos);
  content.reply_to = {{"", desk}};
  CHECK(built(builder, content).find("\r\nReply-To: desk@app.example\r\n") != std::string::npos);
}

TEST_CASE("a header beyond ASCII is encoded, and one in ASCII stays as it is") {
  const auto headers_of = [](const std::vector<mail::ExtraHeader>& headers) {
    const mail::MessageBuilder builder(sender, {}, headers);
    const auto message =
        built(builder, {.queue = "q", .key = "k", .to = {{"", recipient}}, .subject = "s", .text = "t"});
    const auto begin = message.find("MIME-Version: 1.0\r\n") + 19;
    return message.substr(begin, message.find("Content-Type:") - begin);
  };
  CHECK(headers_of({{"Thread-Topic", "Größe"}, {"X-A", "=?utf-8?Q?x?="}}) ==
        "Thread-Topic: =?utf-8?Q?Gr=C3=B6=C3=9Fe?=\r\nX-A: =?utf-8?Q?x?=\r\n");
  CHECK(headers_of({{std::string(64, 'X'), "ü"}}) == std::string(64, 'X') + ":\r\n =?utf-8?Q?=C3=BC?=\r\n");
}

TEST_CASE("what was built is read back, and the same content gives the same bytes") {
  MailMaker maker(1);
  for (int i = 0; i < 1000; ++i) {
    const auto mail = maker.make();
    INFO("mail " << i);
    const mail::MessageBuilder builder(mail.from, mail.reply_to, mail.headers);
    const auto message = built(builder, mail.content());
    REQUIRE(message == built(mail::MessageBuilder(mail.from, mail.reply_to, mail.headers), mail.content()));
    const auto parsed = parse_message(message, mail.is_utf8());
    std::vector<std::string> names{"Date", "From", "To"};
    if (!mail.reply_to.empty()) names.emplace_back("Reply-To");
    names.insert(names.end(),
                 {"Subject", "Message-ID", "Auto-Submitted", "X-Auto-Response-Suppress", "MIME-Version"});
    for (const auto& header : mail.headers) {
      names.push_back(header.name);
      REQUIRE(parsed.header(header.name) == header.value);
    }
    names.emplace_back("Content-Type");
    if (!mail.html) names.emplace_back("Content-Transfer-Encoding");
    REQUIRE(parsed.names() == names);
    REQUIRE(parsed.header("To") == mail.to.text());
    REQUIRE(decoded_words(parsed.header("Subject")) == mail.subject);
    REQUIRE(parsed.text == as_part(mail.text));
    REQUIRE(parsed.html.has_value() == mail.html.has_value());
    if (mail.html) REQUIRE(*parsed.html == as_part(*mail.html));
  }
}

}  // namespace mailroom::test::mail_message_test
