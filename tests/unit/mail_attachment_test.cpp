// Messages with several recipients, headers and files, exactly and as parsers that are not ours read them.

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "crypto/digest.hpp"
#include "mail/message.hpp"
#include "support/catch.hpp"
#include "support/gmime_reader.hpp"
#include "support/parsed_message.hpp"
#include "support/python_reader.hpp"
#include "support/random_mail.hpp"

namespace mailroom::test::mail_attachment_test {

using nlohmann::json;

namespace {

const mail::MessageBuilder builder({"Example", {"no-reply", "app.example"}}, {{"", {"help", "app.example"}}},
                                   {{"X-Tag", "configured"}});

std::string built(const mail::MailContent& content) {
  auto message = builder.build(content);
  if (const auto* refusal = std::get_if<mail::Refusal>(&message)) return "refused: " + refusal->reason;
  return std::get<std::string>(std::move(message));
}

mail::MailContent plain() {
  return {
      .queue = "q", .key = "k", .message = 7, .to = {{"", {"a", "b.example"}}}, .subject = "S", .text = "T"};
}

std::string with(const mail::Attachment& attachment) {
  auto content = plain();
  content.attachments = {attachment};
  return built(content);
}

/// From `name` to the end of the value, unfolded and folded as it is.
std::string header_of(const std::string& message, const std::string& name) {
  const auto begin = message.find("\r\n" + name + ":") + 2;
  auto end = message.find("\r\n", begin);
  while (message[end + 2] == ' ')
    end = message.find("\r\n", end + 2);
  return message.substr(begin, end - begin);
}

/// `message` with names for its boundaries, in their order.
std::string with_names(std::string message) {
  for (const std::string name : {"=_MIXED", "=_ALTERNATIVE", "=_RELATED"}) {
    static const Pattern form("=_[0-9a-f]{16}");
    const auto match = form.first(message);
    if (!match) break;
    const auto& boundary = (*match)[0];
    for (auto at = message.find(boundary); at != std::string::npos; at = message.find(boundary, at))
      message.replace(at, boundary.size(), name);
  }
  return message;
}

std::string shape_of(mail::MailContent content) {
  return read_by_gmime(built(content)).shape;
}

/// True if the HTML of the mail shows the file. No id that a test makes begins with another one.
bool is_shown(const mail::MailContent& content, const mail::Attachment& attachment) {
  return content.html && !attachment.content_id.empty() &&
         content.html->find("cid:" + attachment.content_id) != std::string::npos;
}

/// What the parts must be, by the rules of RFC 2046 and 2387.
std::string expected_shape(const mail::MailContent& content) {
  const auto type_of = [](const mail::Attachment& attachment) {
    const auto type = attachment.content_type.substr(0, attachment.content_type.find(';'));
    return type.empty() ? std::string("application/octet-stream") : type;
  };
  std::string html = "text/html";
  std::string files;
  bool is_related = false;
  for (const auto& attachment : content.attachments) {
    const bool is_within = is_shown(content, attachment);
    (is_within ? html : files) += " " + type_of(attachment);
    is_related = is_related || is_within;
  }
  if (is_related) html = "related(" + html + ")";
  auto readable = content.html ? html : "text/plain";
  if (content.text && content.html) readable = "alternative(text/plain " + html + ")";
  return files.empty() ? readable : "mixed(" + readable + files + ")";
}

json mailboxes_json(const std::vector<mail::Mailbox>& mailboxes) {
  auto all = json::array();
  for (const auto& [name, address] : mailboxes)
    all.push_back({name, address.text()});
  return all;
}

std::string hex_digest(const std::string& text) {
  std::string hex;
  for (const auto byte : crypto::sha256({text}))
    hex += fmt::format("{:02x}", byte);
  return hex;
}

/// In the order of the parts: those that the HTML shows come first.
std::vector<mail::Attachment> in_order(const mail::MailContent& content) {
  auto all = content.attachments;
  std::stable_partition(all.begin(), all.end(),
                        [&](const mail::Attachment& attachment) { return is_shown(content, attachment); });
  return all;
}

std::string disposition_of(const mail::Attachment& attachment, const mail::MailContent& content) {
  return is_shown(content, attachment) ? "inline" : "attachment";
}

json files_json(const mail::MailContent& content) {
  auto files = json::array();
  for (const auto& attachment : in_order(content)) {
    const auto type = attachment.content_type.substr(0, attachment.content_type.find(';'));
    files.push_back({{"type", type.empty() ? "application/octet-stream" : type},
                     {"disposition", disposition_of(attachment, content)},
                     {"name", attachment.name},
                     {"content_id", attachment.content_id},
                     {"sha256", hex_digest(attachment.bytes)}});
  }
  return files;
}

}  // namespace

TEST_CASE("a message with all that it may have is exactly this") {
  mail::MailContent content{
      .date = Moment(std::chrono::seconds(1'795'253'415)),
      .queue = "mailroom",
      .key = "0123456789abcdef",
      .token = 99,
      .message = 42,
      .to = {{"Ada", {"ada", "mail.example"}}, {"", {"bob", "mail.example"}}},
      .cc = {{"B\u00fccher, Inc.", {"c", "mail.example"}}},
      .sender = mail::Mailbox{"Shop", {"shop", "brand.example"}},
      .headers = {{"x-tag", "its own"}, {"List-Unsubscribe", "<https://app.example/u>"}},
      .subject = "Receipt",
      .text = "Hello",
      .html = "<img src=\"cid:logo\">"};
  content.attachments = {
      {.name = "Rechnung \u00fc.pdf", .content_type = "application/pdf", .bytes = "%PDF"},
      {.name = "logo.png", .content_type = "image/png", .content_id = "logo", .bytes = "PNG"}};
  CHECK(with_names(built(content)) ==
        "Date: Sat, 21 Nov 2026 09:30:15 +0000\r\n"
        "From: Shop <shop@brand.example>\r\n"
        "To: Ada <ada@mail.example>,\r\n"
        " bob@mail.example\r\n"
        "Cc: =?utf-8?Q?B=C3=BCcher=2C_Inc=2E?= <c@mail.example>\r\n"
        "Reply-To: help@app.example\r\n"
        "Subject: Receipt\r\n"
        "Message-ID: <mailroom.0123456789abcdef.m42.mailroom@brand.example>\r\n"
        "Auto-Submitted: auto-generated\r\n"
        "X-Auto-Response-Suppress: All\r\n"
        "MIME-Version: 1.0\r\n"
        "x-tag: its own\r\n"
        "List-Unsubscribe: <https://app.example/u>\r\n"
        "Content-Type: multipart/mixed; boundary=\"=_MIXED\"\r\n"
        "\r\n"
        "--=_MIXED\r\n"
        "Content-Type: multipart/alternative; boundary=\"=_ALTERNATIVE\"\r\n"
        "\r\n"
        "--=_ALTERNATIVE\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n"
        "\r\n"
        "Hello\r\n"
        "\r\n"
        "--=_ALTERNATIVE\r\n"
        "Content-Type: multipart/related; type=\"text/html\";\r\n"
        " boundary=\"=_RELATED\"\r\n"
        "\r\n"
        "--=_RELATED\r\n"
        "Content-Type: text/html; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n"
        "\r\n"
        "<img src=3D\"cid:logo\">\r\n"
        "\r\n"
        "--=_RELATED\r\n"
        "Content-Type: image/png\r\n"
        "Content-Transfer-Encoding: base64\r\n"
        "Content-ID: <logo>\r\n"
        "Content-Disposition: inline;\r\n"
        " filename=\"logo.png\"\r\n"
        "\r\n"
        "UE5H\r\n"
        "\r\n"
        "--=_RELATED--\r\n"
        "\r\n"
        "--=_ALTERNATIVE--\r\n"
        "\r\n"
        "--=_MIXED\r\n"
        "Content-Type: application/pdf\r\n"
        "Content-Transfer-Encoding: base64\r\n"
        "Content-Disposition: attachment;\r\n"
        " filename*=utf-8''Rechnung%20%C3%BC.pdf\r\n"
        "\r\n"
        "JVBERg==\r\n"
        "\r\n"
        "--=_MIXED--\r\n");
}

TEST_CASE("all copies of a message are the same bytes, whichever token they are for") {
  auto content = plain();
  const auto first = built(content);
  content.token = 8;
  CHECK(built(content) == first);
  CHECK(header_of(first, "Message-ID") == "Message-ID: <q.k.m7.mailroom@app.example>");
}

TEST_CASE("who gets a mail without being named stands in no header") {
  auto content = plain();
  content.to.clear();
  CHECK(header_of(built(content), "To") == "To: undisclosed-recipients:;");
  content.cc = {{"", {"c", "b.example"}}};
  CHECK(built(content).find("\r\nTo:") == std::string::npos);
  CHECK(read_by_gmime(built(content)).cc == decltype(ReadMessage::cc){{"", "c@b.example"}});
}

TEST_CASE("the parts are nested as readers expect") {
  auto content = plain();
  CHECK(shape_of(content) == "text/plain");
  content.attachments = {{.name = "a", .content_type = "a/b", .content_id = "x", .bytes = ""}};
  CHECK(shape_of(content) == "mixed(text/plain a/b)");
  content.html = "<img src='cid:x'>";
  CHECK(shape_of(content) == "alternative(text/plain related(text/html a/b))");
  content.text.reset();
  CHECK(shape_of(content) == "related(text/html a/b)");
  content.attachments.push_back({.name = "c", .content_type = "c/d"});
  CHECK(shape_of(content) == "mixed(related(text/html a/b) c/d)");
  content.attachments.erase(content.attachments.begin());
  CHECK(shape_of(content) == "mixed(text/html c/d)");
}

TEST_CASE("only a file that the HTML names is hidden in it") {
  auto content = plain();
  content.text.reset();
  const auto is_related = [&](const std::string& id, const std::string& html) {
    content.html = html;
    content.attachments = {{.name = "bill.pdf", .content_type = "a/b", .content_id = id, .bytes = "x"}};
    const auto message = built(content);
    CHECK((message.find("inline;") != std::string::npos) == (message.find("related") != std::string::npos));
    return read_by_gmime(message).shape == "related(text/html a/b)";
  };
  CHECK_FALSE(is_related("bill", "<p>your bill</p>"));
  CHECK_FALSE(is_related("bill", "<p>acid:bill2 cid:bill2 xcid:</p>"));
  CHECK_FALSE(is_related("a", "<img src=\"cid:ab\"><img src=\"cid:\">"));
  CHECK(is_related("bill", "<img src=\"CID:bill\">"));
  CHECK(is_related("bill", "<img src=cid:bill>"));
  CHECK(is_related("bill", "<p style=\"background: url(cid:bill)\">"));
  CHECK(is_related("bill", "<p style=\"background: url(&quot;cid:bill&quot;)\">"));
  CHECK(is_related("logo@app.example", "<img src=\"cid:logo@app.example\">"));
  CHECK(is_related("logo@app.example", "<img src='cid:logo%40app.example'>"));
}

TEST_CASE("an invitation is an alternative, and a file to be saved") {
  auto content = plain();
  content.html = "<p>H</p>";
  content.attachments = {
      {.name = "i.ics", .content_type = "text/calendar; METHOD=REQUEST", .bytes = "BEGIN:VCALENDAR\r\n"},
      {.name = "j.ics", .content_type = "text/calendar; method=REQUEST", .bytes = "2"},
      {.name = "k.ics", .content_type = "text/calendar; charset=utf-8", .bytes = "3"}};
  const auto read = read_by_gmime(built(content));
  CHECK(read.shape ==
        "mixed(alternative(text/plain text/html text/calendar) application/ics text/calendar text/calendar)");
  CHECK(built(content).find("\r\nContent-Type: text/calendar; METHOD=REQUEST; charset=utf-8\r\n"
                            "Content-Transfer-Encoding: base64\r\n\r\n") != std::string::npos);
  REQUIRE(read.parts.size() == 6);
  CHECK(read.parts[2].content == "BEGIN:VCALENDAR\r\n");
  CHECK(read.parts[3].content == "BEGIN:VCALENDAR\r\n");
  CHECK(read.parts[3].name == "i.ics");
  content.html.reset();
  content.attachments = {
      {.name = "i.ics", .content_type = "text/calendar;method=CANCEL;charset=iso-8859-1", .bytes = "x"}};
  CHECK(shape_of(content) == "mixed(alternative(text/plain text/calendar) application/ics)");
  CHECK(built(content).find("Content-Type: text/calendar;method=CANCEL;charset=iso-8859-1\r\n") !=
        std::string::npos);
}

TEST_CASE("the name of a file is quoted, or encoded in pieces") {
  const auto name_header = [](const std::string& name) {
    return header_of(with({.name = name, .bytes = "x"}), "Content-Disposition");
  };
  const std::string start = "Content-Disposition: attachment";
  CHECK(name_header("") == start);
  CHECK(name_header("a b;c=d.txt") == start + ";\r\n filename=\"a b;c=d.txt\"");
  CHECK(name_header("a\"b") == start + ";\r\n filename*=utf-8''a%22b");
  CHECK(name_header("=?utf-8?Q?x?=") == start + ";\r\n filename*=utf-8''%3D%3Futf-8%3FQ%3Fx%3F%3D");
  CHECK(name_header("../../etc/passwd") == start + ";\r\n filename=\"../../etc/passwd\"");
  std::string umlauts;
  for (int i = 0; i < 20; ++i)
    umlauts += "\u00fc";
  const auto header = name_header(umlauts + ".pdf");
  CHECK(header.find("\r\n filename*0*=utf-8''%C3%BC") != std::string::npos);
  CHECK(header.find("\r\n filename*2*=") != std::string::npos);
  for (const auto& name : {umlauts + ".pdf", std::string(255, 'x'), std::string(127, '\'') + "\u00fc"}) {
    INFO(name);
    const auto read = read_by_gmime(with({.name = name, .bytes = "x"}));
    CHECK(read.parts.back().name == name);
  }
}

TEST_CASE("what cannot go with a mail is refused") {
  const std::string start = "refused: attachment 1 has a ";
  for (const std::string name : {"a\r\nBcc: x@y.example", "a\nb", "\x7f", "\xff"})
    CHECK(with({.name = name}) == start + "name with a control character or invalid UTF-8");
  CHECK(with({.name = std::string("a\0b", 3)}) == start + "name with a control character or invalid UTF-8");
  CHECK(with({.name = std::string(256, 'x')}) == start + "name of 256 octets, at most 255 are allowed");
  for (const std::string type :
       {"pdf", "a/", "/b", "a/b/c", "a b/c", "text/plain\r\nX: y", "multipart/mixed", "message/rfc822",
        "text/plain; charset", "text/plain; =x", "text/plain;", "text/plain; a=\"b", "text/plain; a=\"b\"c",
        "t\u00e4xt/plain", "MESSAGE/partial"}) {
    INFO(type);
    CHECK(with({.content_type = type}) ==
          start + "type that is not such as application/pdf or text/csv; charset=utf-8");
  }
  CHECK(with({.content_type = std::string(200, 'a') + "/b"}).starts_with(start + "type"));
  for (const std::string id : {"a b", "a%20b", ".a", "a.", "a..b", "@a", "a@", "a@b@c", "a@b.", "<a>",
                               "a\r\nX: y", "\u00fc", "a\tb"}) {
    INFO(id);
    CHECK(with({.content_id = id}) == start + "content id that is not such as logo or logo@app.example");
  }
  auto content = plain();
  content.attachments = {{.content_id = "a"}, {.content_id = "a"}};
  CHECK(built(content) == "refused: attachment 2 has the content id of another");
  content.attachments.assign(101, {});
  CHECK(built(content) == "refused: it has 101 attachments, at most 100 are allowed");
  content = plain();
  content.text.reset();
  CHECK(built(content) == "refused: it has neither text nor HTML");
  content.text = std::string("a\0b", 3);
  CHECK(built(content) == "refused: the text has a NUL");
  content = plain();
  const mail::Address forged{"a\r\nBcc: x", "y.example"};
  for (const auto& spoil : std::vector<std::function<void(mail::MailContent&)>>{
           [&](mail::MailContent& mail) { mail.to[0].address = forged; },
           [&](mail::MailContent& mail) { mail.to[0].name = "a\r\nBcc: x"; },
           [&](mail::MailContent& mail) {
             mail.cc = {{"a\nb", {"a", "b.example"}}};
           },
           [&](mail::MailContent& mail) {
             mail.sender = mail::Mailbox{"a\nb", {"a", "b.example"}};
           },
           [&](mail::MailContent& mail) {
             mail.reply_to = {{"", {"a", "b.example"}}, {"", forged}};
           },
           [&](mail::MailContent& mail) {
             mail.headers = {{"X", "a\r\nBcc: x"}};
           },
           [&](mail::MailContent& mail) {
             mail.headers = {{"X: a\r\nBcc", "x"}};
           }}) {
    auto spoiled = plain();
    spoil(spoiled);
    CHECK(built(spoiled).find("control character or invalid UTF-8") != std::string::npos);
  }
}

TEST_CASE("a message with files is read back by GMime and Python, and no bytes differ") {
  MailMaker maker(20261126);
  std::vector<mail::MailContent> contents;
  std::vector<std::string> messages;
  for (int i = 0; i < 200; ++i) {
    contents.push_back(maker.make_message());
    messages.push_back(built(contents.back()));
    REQUIRE(messages.back() == built(contents.back()));
  }
  const auto read = read_by_python(messages);
  REQUIRE(read.size() == messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& content = contents[i];
    INFO("mail " << i << "\n" << messages[i].substr(0, 4000));
    const auto files = in_order(content);
    const auto text = content.text ? as_part(*content.text) : "";
    const auto html = content.html ? as_part(*content.html) : "";

    const auto& python = read[i];
    REQUIRE(python["subject"] == content.subject);
    REQUIRE(python["shape"] == expected_shape(content));
    REQUIRE(python["recipients"] == json{mailboxes_json(content.to), mailboxes_json(content.cc)});
    REQUIRE(python["files"] == files_json(content));
    REQUIRE(python["text"] == (content.text ? json(text) : json()));
    REQUIRE(python["html"] == (content.html ? json(html) : json()));
    for (const auto& header : content.headers)
      REQUIRE(python["extra"][header.name] == header.value);
    for (const auto& defect : python["defects"])
      REQUIRE(defect.get<std::string>().ends_with("NonASCIILocalPartDefect"));

    const auto gmime = read_by_gmime(messages[i]);
    REQUIRE(gmime.subject == content.subject);
    REQUIRE(gmime.shape == expected_shape(content));
    REQUIRE(gmime.to.size() == content.to.size());
    REQUIRE(gmime.cc.size() == content.cc.size());
    const auto first_file = gmime.parts.size() - files.size();
    REQUIRE(first_file == (content.text ? 1U : 0U) + (content.html ? 1U : 0U));
    for (std::size_t f = 0; f < files.size(); ++f) {
      REQUIRE(gmime.parts[first_file + f].content == files[f].bytes);
      REQUIRE(gmime.parts[first_file + f].name == files[f].name);
      REQUIRE(gmime.parts[first_file + f].content_id == files[f].content_id);
    }
    if (content.text) REQUIRE(with_lf(gmime.parts.front().content) == text);
    if (content.html) REQUIRE(with_lf(gmime.parts[content.text ? 1 : 0].content) == html);
  }
}

}  // namespace mailroom::test::mail_attachment_test
