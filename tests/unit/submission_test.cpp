// The dialogue of mailroom submission by values alone: where a mail ends, what a client is told, what is
// stored.

#include <fmt/format.h>
#include <random>

#include "submission/command.hpp"
#include "submission/conversation.hpp"
#include "submission/data_reader.hpp"
#include "submission/login_checks.hpp"
#include "submission/mail_time.hpp"
#include "submission/submitted_mail.hpp"
#include "support/catch.hpp"

namespace mailroom::test::submission_test {

using submission::Conversation;
using submission::DataReader;

namespace {

constexpr TimePoint start{std::chrono::hours(1)};
constexpr Moment now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 28) + std::chrono::hours(12);

/// What an independent reading of RFC 5321 says of `text`: the mail, `more`, or `bare`, and how much was
/// read.
std::string oracle(const std::string& text) {
  std::size_t end = std::string::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_pair = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (text[i] == '\r' && i + 1 == text.size()) break;
    if ((text[i] == '\r' && !is_pair) || text[i] == '\n') return "bare";
    if (!is_pair) continue;
    // The line before this end is a single dot.
    const bool is_dot =
        i >= 1 && text[i - 1] == '.' && (i == 1 || (i >= 3 && text.substr(i - 3, 2) == "\r\n"));
    if (is_dot) {
      end = i + 2;
      break;
    }
    ++i;
  }
  if (end == std::string::npos) return "more";
  std::string mail;
  for (std::size_t at = 0; at < end - 3;) {
    const auto line_end = text.find("\r\n", at) + 2;
    mail += text.substr(text[at] == '.' ? at + 1 : at, line_end - (text[at] == '.' ? at + 1 : at));
    at = line_end;
  }
  return fmt::format("{} of {}", mail, end);
}

std::string read_in_pieces(const std::string& text, std::mt19937& random) {
  DataReader reader;
  reader.begin(1000);
  std::size_t read = 0;
  while (read < text.size()) {
    std::string_view piece(text);
    piece = piece.substr(read, 1 + random() % 4);
    const auto size = piece.size();
    const auto state = reader.read(piece);
    read += size - piece.size();
    if (state == DataReader::State::bare_line_end) return "bare";
    if (state == DataReader::State::done) return fmt::format("{} of {}", reader.mail(), read);
  }
  return "more";
}

/// A service that has a role and no sockets.
struct Play {
  submission::ServiceTerms terms{
      .host = "mail.shop.example", .has_tls = true, .max_size = 1000, .max_recipients = 3};
  std::ptrdiff_t held = 0;
  std::ptrdiff_t most_held = 100'000;
  submission::RoleTerms role_terms{};
  submission::ServiceAnswers service{
      .terms_of = [this](const std::string&) { return role_terms; },
      .closed = [this] { return closed; },
      .is_over_limit = [this](const std::string&) { return is_over_limit; },
      .refused = [this](const submission::Reply& reply) { refused.push_back(reply.code); },
      .hold =
          [this](std::ptrdiff_t change) {
            held += change;
            return held <= most_held;
          },
      .random = [] { return std::string("r4nd0m"); },
      .now = [] { return now; }};
  submission::Client client{.peer = "127.0.0.1", .is_secure = false, .needs_login = false, .role = "shop"};
  std::vector<submission::SubmittedMail> mails{};
  std::optional<submission::Reply> closed{};
  bool is_over_limit = false;
  std::vector<int> refused{};

  /// All replies to `bytes`, with wishes fulfilled at once.
  std::string talk(std::string_view bytes) {
    Conversation conversation(terms, service, client);
    return talk(conversation, bytes);
  }
  std::string talk(Conversation& conversation, std::string_view bytes) {
    std::string said;
    for (bool goes_on = true; goes_on;) {
      const auto wish = conversation.take(bytes, false, start);
      said += conversation.take_output();
      switch (wish) {
        case Conversation::Wish::store:
          mails.push_back(conversation.take_mail());
          conversation.stored(std::to_string(mails.size()), start);
          break;
        case Conversation::Wish::log_in: {
          const auto login = conversation.take_login();
          if (login.password == "right") {
            conversation.logged_in(login.role, start);
          } else {
            conversation.refuse(submission::replies::wrong_password, start);
          }
          break;
        }
        case Conversation::Wish::start_tls:
          conversation.secured(start);
          break;
        case Conversation::Wish::end:
        case Conversation::Wish::none:
          goes_on = false;
      }
      said += conversation.take_output();
    }
    return said;
  }
  /// The codes of all last lines: `250 250 354 554`.
  std::string codes(std::string_view bytes) { return codes_of(talk(bytes)); }
  static std::string codes_of(const std::string& said) {
    std::string codes;
    for (std::size_t at = 0; at < said.size(); at = said.find("\r\n", at) + 2)
      if (said[at + 3] == ' ') codes += (codes.empty() ? "" : " ") + said.substr(at, 3);
    return codes;
  }
};

const std::string envelope = "EHLO me\r\nMAIL FROM:<a@shop.example>\r\nRCPT TO:<ada@mail.example>\r\n";
const std::string header = "From: a@shop.example\r\n\r\n";

}  // namespace

TEST_CASE("the end of the data is where RFC 5321 has it, however the bytes are cut") {
  std::mt19937 random(17);
  const std::string letters = "\r\n\r\n..ab";
  int whole = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (auto left = random() % 24; left > 0; --left) {
      const auto pick = random() % 10;
      text += pick < 4   ? std::string("\r\n")
              : pick < 6 ? std::string(".")
                         : std::string(1, letters[random() % letters.size()]);
    }
    const auto wanted = oracle(text);
    whole += wanted.find(" of ") != std::string::npos ? 1 : 0;
    const auto read = read_in_pieces(text, random);
    if (read != wanted) {
      CAPTURE(text);
      REQUIRE(read == wanted);
    }
  }
  CHECK(whole > 5000);
}

TEST_CASE("no sequence that other servers take for the end of a mail makes two mails of one") {
  for (const std::string end :
       {"\n.\n", "\n.\r\n", "\r.\r", "\r.\r\n", "\r\n.\n", "\r\n.\r", "\r\r\n.\r\n", "\r\n.\r\r\n",
        "\n\n.\r\n", "\r\n\x00.\r\n", "\r\n.\x00\r\n", "\r\n. \r\n", "\r\n.\x0b\r\n", "\r\n..\r\n"}) {
    Play play;
    const auto codes = play.codes(envelope + "DATA\r\n" + header + "first" + end +
                                  "MAIL FROM:<eve@evil.example>\r\nRCPT TO:<bob@mail.example>\r\nDATA\r\n" +
                                  header + "second\r\n.\r\n");
    INFO(fmt::format("{:?}", end) << " " << codes);
    // It is refused at once, or all of it is one mail.
    CHECK(play.mails.size() <= 1);
    if (!play.mails.empty()) CHECK(play.mails[0].raw.find("second") != std::string::npos);
    CHECK((codes == "250 250 250 354 554" || codes == "250 250 250 354 250"));
  }
}

TEST_CASE("a mail through DATA and through BDAT is stored as it came") {
  const std::string mail =
      "From: a@shop.example\r\nDate: Sat, 28 Nov 2026 12:00:00 +0000\r\nMessage-ID: <1@shop.example>\r\n\r\n.dot\r\n..\r\n\r\n";
  Play play;
  std::string stuffed;
  for (std::size_t at = 0; at < mail.size();) {
    const auto end = mail.find("\r\n", at) + 2;
    stuffed += (mail[at] == '.' ? "." : "") + mail.substr(at, end - at);
    at = end;
  }
  CHECK(play.codes(envelope + "DATA\r\n" + stuffed + ".\r\nQUIT\r\n") == "250 250 250 354 250 221");
  CHECK(play.codes(envelope + fmt::format("BDAT 10\r\n{}BDAT {} LAST\r\n{}", mail.substr(0, 10),
                                          mail.size() - 10, mail.substr(10))) == "250 250 250 250 250");
  CHECK(play.codes(envelope + fmt::format("BDAT {}\r\n{}BDAT 0 LAST\r\n", mail.size(), mail)) ==
        "250 250 250 250 250");
  REQUIRE(play.mails.size() == 3);
  for (const auto& each : play.mails) {
    CHECK(each.raw.ends_with("\r\n" + mail));
    CHECK(each.raw.starts_with(
        "Received: from me ([127.0.0.1])\r\n\tby mail.shop.example (mailroom) with ESMTP;\r\n"));
    CHECK(each.return_path == "a@shop.example");
    CHECK(each.recipients == "ada@mail.example");
    CHECK(each.key == play.mails[0].key);
  }
  CHECK(play.held == 0);
}

TEST_CASE("each command has the reply of the table") {
  struct Row {
    const char* said;
    const char* codes;
  };
  for (const auto& row : std::vector<Row>{
           {"MAIL FROM:<a@b.example>\r\n", "503"},
           {"EHLO\r\n", "501"},
           {"HELO me\r\nMAIL FROM:<a@b.example>\r\n", "250 250"},
           {"EHLO me\r\nMAIL FROM: <a@b.example>\r\nRCPT TO: ada@mail.example\r\n", "250 250 250"},
           {"EHLO me\r\nMAIL FROM:a@b.example\r\n", "250 250"},
           {"EHLO me\r\nMAIL FROM:<>\r\nMAIL FROM:<>\r\n", "250 250 503"},
           {"EHLO me\r\nmail from:<@x.example,@y.example:a@b.example>\r\n", "250 250"},
           {"EHLO me\r\nMAIL FROM:<a@b.example\r\n", "250 501"},
           {"EHLO me\r\nMAIL FROM:<a b@c.example>\r\n", "250 501"},
           {"EHLO me\r\nMAIL FROM:<a@b.example> SIZE=1000\r\n", "250 250"},
           {"EHLO me\r\nMAIL FROM:<a@b.example> SIZE=1001\r\n", "250 552"},
           {"EHLO me\r\nMAIL FROM:<a@b.example> BODY=8bitmime SMTPUTF8 AUTH=<>\r\n", "250 250"},
           {"EHLO me\r\nMAIL FROM:<a@b.example> BODY=BINARYMIME\r\n", "250 501"},
           {"EHLO me\r\nMAIL FROM:<a@b.example> RET=HDRS\r\n", "250 555"},
           {"EHLO me\r\nMAIL FROM:<\xc3\xa4@b.example>\r\n", "250 550"},
           {"EHLO me\r\nMAIL FROM:<\xc3\xa4@b.example> SMTPUTF8\r\nRCPT TO:<\xc3\xa4@c.example>\r\n",
            "250 250 250"},
           {"EHLO me\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<\xc3\xa4@c.example>\r\n", "250 250 553"},
           {"EHLO me\r\nMAIL FROM:<a@b.example> HOLDFOR=60\r\n", "250 250"},
           {"EHLO me\r\nMAIL FROM:<a@b.example> HOLDFOR=x\r\n", "250 501"},
           {"EHLO me\r\nMAIL FROM:<a@b.example> HOLDUNTIL=2026-11-28T12:00:00\r\n", "250 501"},
           {"RCPT TO:<a@b.example>\r\n", "503"},
           {"EHLO me\r\nMAIL FROM:<>\r\nRCPT TO:<>\r\nRCPT TO:<root>\r\nRCPT TO:<root@web1>\r\n",
            "250 250 501 550 550"},
           {"EHLO me\r\nMAIL FROM:<>\r\nRCPT TO:<a@b.example> NOTIFY=NEVER\r\n", "250 250 555"},
           {"EHLO me\r\nMAIL FROM:<>\r\nDATA\r\n", "250 250 554"},
           {"DATA\r\n", "503"},
           {"EHLO me\r\nBDAT 5\r\nhelloNOOP\r\n", "250 503 250"},
           {"EHLO me\r\nMAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\nBDAT 5\r\nhelloDATA\r\n",
            "250 250 250 250 503"},
           {"BDAT x\r\nNOOP\r\n", "501"},
           {"BDAT -1\r\nNOOP\r\n", "501"},
           {"BDAT 18446744073709551616\r\nNOOP\r\n", "501"},
           {"BDAT 18446744073709551615\r\nNOOP\r\n", "552"},
           {"NOOP\r\nRSET\r\nVRFY ada\r\nHELP\r\nEXPN all\r\nQUIT\r\nNOOP\r\n", "250 250 252 214 500 221"},
           {"GET / HTTP/1.1\r\nNOOP\r\n", "421"},
           {"POST / HTTP/1.1\r\nNOOP\r\n", "421"},
           {"NOOP\nNOOP\r\n", "500"},
           {"NO\rOP\r\nNOOP\r\n", "500"},
           {"STARTTLS\r\n", "503"},
           {"EHLO me\r\nAUTH PLAIN AHNob3AAcmlnaHQ=\r\n", "250 502"},
       }) {
    INFO(row.said);
    CHECK(Play().codes(row.said) == row.codes);
  }
  CHECK(Play().codes(std::string(5000, 'x')) == "500");
  std::string many;
  for (int i = 0; i < 200; ++i)
    many += "NOOP\r\n";
  CHECK(Play().talk(many).ends_with("421 4.7.0 too many commands without a mail\r\n"));
  CHECK(Play()
            .talk("x\r\nx\r\nx\r\nx\r\nx\r\nx\r\nx\r\nx\r\nx\r\nx\r\nx\r\nNOOP\r\n")
            .ends_with("421 4.7.0 too many errors\r\n"));
}

TEST_CASE("a login comes over TLS, and what was said before it is forgotten") {
  Play play;
  play.client = {.peer = "127.0.0.1", .is_secure = false, .needs_login = true, .role = ""};
  CHECK(play.codes("EHLO me\r\nMAIL FROM:<a@b.example>\r\nAUTH PLAIN x\r\n") == "250 530 538");
  CHECK(play.talk("EHLO me\r\n").find("AUTH") == std::string::npos);
  CHECK(play.codes("EHLO me\r\nSTARTTLS\r\nNOOP\r\n") == "250 554");
  Conversation conversation(play.terms, play.service, play.client);
  CHECK(Play::codes_of(play.talk(conversation, "EHLO me\r\nSTARTTLS\r\n")) == "250 220");
  CHECK(Play::codes_of(play.talk(conversation, "MAIL FROM:<a@b.example>\r\n")) == "530");
  CHECK(play.talk(conversation, "EHLO me\r\n").find("250-AUTH PLAIN LOGIN\r\n") != std::string::npos);
  CHECK(Play::codes_of(play.talk(conversation, "AUTH PLAIN AHNob3AAd3Jvbmc=\r\n")) == "535");
  CHECK(Play::codes_of(play.talk(conversation, "AUTH LOGIN\r\nc2hvcA==\r\ncmlnaHQ=\r\n")) == "334 334 235");
  CHECK(conversation.role() == "shop");
  CHECK(Play::codes_of(play.talk(conversation, "AUTH PLAIN AHNob3AAcmlnaHQ=\r\n")) == "503");
  CHECK(Play::codes_of(play.talk(conversation, "MAIL FROM:<a@b.example>\r\n")) == "250");
  play.client.is_secure = true;
  CHECK(
      play.codes(
          "EHLO me\r\nAUTH PLAIN\r\n*\r\nAUTH PLAIN\r\n!\r\nAUTH CRAM-MD5\r\nAUTH PLAIN AHNob3AAcmlnaHQ=\r\n") ==
      "250 334 501 334 501 504 421");
  // Nobody mails as another role.
  CHECK(play.codes("EHLO me\r\nAUTH PLAIN ZXZlAHNob3AAcmlnaHQ=\r\n") == "250 535");
}

TEST_CASE("options are taken out of the header, and what is missing is put in front") {
  const auto made = [](const std::string& mail, submission::MailCircumstances about = {}) {
    about.role = "shop";
    about.hello = "me";
    about.host = "mail.shop.example";
    about.now = now;
    about.random = "r4nd0m";
    if (about.recipients.empty()) about.recipients = "ada@mail.example";
    return submission::submitted_mail(mail, about);
  };
  const auto mail_of = [&](const std::string& mail, const submission::MailCircumstances& about = {}) {
    const auto result = made(mail, about);
    if (const auto* reply = std::get_if<submission::Reply>(&result)) FAIL(reply->words);
    return std::get<submission::SubmittedMail>(result);
  };
  const auto refusal_of = [&](const std::string& mail, const submission::MailCircumstances& about = {}) {
    const auto result = made(mail, about);
    const auto* reply = std::get_if<submission::Reply>(&result);
    return reply == nullptr ? std::string("taken") : fmt::format("{} {}", reply->code, reply->words);
  };
  const std::string options =
      "From: a@shop.example\r\nX-Mailroom-Key: k1\r\nBcc: hidden@mail.example\r\nX-Mailroom-Reference: order:17\r\n"
      "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nX-Mailroom-Profile: news\r\nX-Mailroom-Send-After: 2026-12-24T18:00:00+01:00\r\n"
      "X-Mailroom-Expires-At: Fri, 25 Dec 2026 00:00:00 +0000\r\nX-Mailroom-Action: receipt\r\n\r\nx\r\n";
  const auto with = mail_of(options);
  CHECK(with.key == "k1");
  CHECK(with.reference == "order:17");
  CHECK(with.profile == "news");
  CHECK(with.action == "receipt");
  CHECK(with.subject == "Gr\u00fc\u00dfe");
  CHECK(with.send_after ==
        Moment(std::chrono::sys_days(std::chrono::year(2026) / 12 / 24) + std::chrono::hours(17)));
  CHECK(with.raw.ends_with(
      "Message-ID: <r4nd0m@mail.shop.example>\r\nFrom: a@shop.example\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nx\r\n"));
  CHECK(with.raw.find("Date: Sat, 28 Nov 2026 12:00:00 +0000\r\n") != std::string::npos);
  // Somebody else's mail that is forwarded has none that mean something.
  const auto forwarded = mail_of(options, {.takes_options = false});
  CHECK(forwarded.key.starts_with("smtp:"));
  CHECK(forwarded.reference.empty());
  CHECK(forwarded.raw.find("X-Mailroom") == std::string::npos);
  CHECK(refusal_of("From: a@b.example\r\nX-Mailroom-Ky: 1\r\n\r\n") ==
        "554 the header x-mailroom-ky is none that mailroom knows");
  CHECK(refusal_of("From: a@b.example\r\nX-Mailroom-Send-After: tomorrow\r\n\r\n")
            .starts_with("554 the header x-mailroom-send-after is not a time"));
  CHECK(refusal_of("From: a@b.example\r\nX-Mailroom-Key: \r\n\r\n")
            .starts_with("554 the header x-mailroom-key is empty"));
  CHECK(refusal_of("Subject: x\r\n\r\n") == "554 the mail has no From");
  CHECK(mail_of("Subject: x\r\n\r\n", {.return_path = "a@shop.example"})
            .raw.find("From: <a@shop.example>\r\n") != std::string::npos);
  std::string hops = "From: a@b.example\r\n";
  for (int i = 0; i < 51; ++i)
    hops += "Received: from x\r\n";
  CHECK(refusal_of(hops + "\r\n").starts_with("554 the mail has passed 50 servers"));
  CHECK(mail_of("no header at all\r\n", {.return_path = "a@b.example"})
            .raw.ends_with("\r\n\r\nno header at all\r\n"));
  const auto cron = mail_of("From: root (Cron Daemon)\r\n\r\nx\r\n", {.return_path = "no-reply@shop.example",
                                                                      .may_replace_local_from = true,
                                                                      .local_from = "no-reply@shop.example"});
  CHECK(cron.raw.find("From: \"Cron Daemon\" <no-reply@shop.example>\r\n") != std::string::npos);

  // The same bytes to the same people are one mail, if they have a Message-ID.
  const std::string same =
      "From: a@b.example\r\nMessage-ID: <1@b.example>\r\nDate: Sat, 28 Nov 2026 12:00:00 +0000\r\n\r\nx\r\n";
  const auto key = mail_of(same).key;
  CHECK(key.starts_with(fmt::format("smtp:{:08x}:", in_seconds(now))));
  CHECK(mail_of(same).key == key);
  CHECK(mail_of(same, {.recipients = "bob@mail.example"}).key != key);
  CHECK(mail_of(same, {.return_path = "b@b.example"}).key != key);
  CHECK(mail_of(same + "y\r\n").key != key);
  CHECK(mail_of("From: a@b.example\r\n\r\nx\r\n").key.ends_with(":r4nd0m"));
}

TEST_CASE("a time of a mail has an offset") {
  const auto text = [](const char* given) {
    const auto moment = submission::parse_mail_time(given);
    return moment ? moment_text(*moment) : std::string("none");
  };
  const auto noon = moment_text(now);
  for (const auto* same :
       {"2026-11-28T12:00:00Z", "2026-11-28T13:00:00+01:00", "2026-11-28 12:00Z", "2026-11-28T12:00:00.25Z",
        "Sat, 28 Nov 2026 12:00:00 +0000", "28 Nov 2026 07:00 -0500", "Sat, 28 Nov 2026 13:00:00 +0100 (CET)",
        "Sat, 28 Nov 2026 12:00:00 GMT"}) {
    INFO(same);
    CHECK(text(same) == noon);
  }
  for (const auto* wrong : {"", "tomorrow", "2026-11-28T12:00:00", "2026-11-28", "2026-13-28T12:00:00Z",
                            "2026-11-31T12:00:00Z", "2026-11-28T25:00:00Z", "Sat, 28 Nov 2026 12:00:00",
                            "Sat, 28 Nov 2026 12:00:00 MEZ", "2026-11-28T12:00:00Zx"}) {
    INFO(wrong);
    CHECK(text(wrong) == "none");
  }
}

TEST_CASE("bodies count towards the memory of all until they are stored") {
  Play play;
  play.most_held = 500;
  CHECK(play.codes(envelope + "DATA\r\n" + header + std::string(600, 'x') + "\r\n.\r\n") ==
        "250 250 250 354 421");
  CHECK(play.held == 0);
  play.held = 501;
  CHECK(play.codes(envelope + "DATA\r\nNOOP\r\n") == "250 250 250 452 250");
}

TEST_CASE("a mail that is too large is refused, and its end is found") {
  Play play;
  CHECK(play.codes(envelope + "DATA\r\n" + header + std::string(990, 'x') + "\r\n.\r\nNOOP\r\n") ==
        "250 250 250 354 552 250");
  CHECK(play.codes(envelope + "DATA\r\n" + header + std::string(5000, 'x')) == "250 250 250 354 552");
  CHECK(play.mails.empty());
}

TEST_CASE("a service that is closed says so at the greeting, and to a mail that begins") {
  Play play;
  Conversation open(play.terms, play.service, play.client);
  open.greet(start);
  CHECK(open.take_output() == "220 mail.shop.example ESMTP mailroom\r\n");
  play.closed = submission::replies::is_copy;
  CHECK(Play::codes_of(play.talk(open, envelope)) == "250 421");
  Conversation late(play.terms, play.service, play.client);
  late.greet(start);
  CHECK(late.is_over());
  CHECK(late.take_output().starts_with("421 4.3.5 this database is a copy"));
  CHECK(play.refused == std::vector{421, 421});
}

TEST_CASE("each refusal is counted, and a role that is over its limit told so at MAIL") {
  Play play;
  play.is_over_limit = true;
  CHECK(play.codes(envelope + "x\r\nNOOP\r\n") == "250 451 503 500 250");
  CHECK(play.refused == std::vector{451, 503, 500});
}

TEST_CASE("a role mails from its own addresses alone, in the envelope and in From") {
  Play play;
  play.role_terms.senders = {"@shop.example", "boss@other.example"};
  for (const auto* sender : {"a@shop.example", "A@SHOP.EXAMPLE", "boss@other.example", ""})
    CHECK(play.codes(fmt::format("EHLO me\r\nMAIL FROM:<{}>\r\n", sender)) == "250 250");
  for (const auto* sender :
       {"a@evil.example", "a@sub.shop.example", "x@other.example", "a@shop.example.evil.example"})
    CHECK(play.codes(fmt::format("EHLO me\r\nMAIL FROM:<{}>\r\n", sender)) == "250 550");
  const auto told = [&](const std::string& from) {
    return play.codes(envelope + "DATA\r\n" + from + "\r\nx\r\n.\r\n").substr(16);
  };
  for (const auto* from :
       {"From: a@shop.example\r\n", "From: \"Eve, <eve@evil.example>\" <a@shop.example>\r\n",
        "From: a@shop.example (eve@evil.example)\r\n", "from : <a@shop.example>\r\n", "Subject: x\r\n"}) {
    INFO(from);
    CHECK(told(from) == "250");
  }
  for (const auto* from :
       {"From: eve@evil.example\r\n", "From: a@shop.example, eve@evil.example\r\n",
        "From: a@shop.example\r\nFrom: eve@evil.example\r\n", "From: <a@shop.example> <eve@evil.example>\r\n",
        "From: \"a@shop.example\" eve@evil.example\r\n", "From: (a@shop.example\r\n", "From:\r\n",
        "From: eve@evil.example (\r\n a@shop.example)\r\n", "From: us: a@shop.example;\r\n"}) {
    INFO(from);
    CHECK(told(from) == "550");
  }
}

TEST_CASE("a right password is known for a while, and a guesser waits longer each time") {
  submission::KnownPasswords known(Milliseconds(1000));
  CHECK_FALSE(known.has({"shop", "right"}, start));
  known.keep({"shop", "right"}, start);
  CHECK(known.has({"shop", "right"}, start));
  CHECK_FALSE(known.has({"shop", "wrong"}, start));
  CHECK_FALSE(known.has({"other", "right"}, start));
  CHECK_FALSE(known.has({"shop", "right"}, start + Milliseconds(1001)));
  submission::GuessDelays delays;
  std::string waits;
  for (int i = 0; i < 11; ++i) {
    const auto wait = delays.delay_of("192.0.2.1", start);
    waits += wait ? fmt::format("{} ", wait->count() / 1000) : "end";
  }
  CHECK(waits == "1 2 4 4 4 4 4 4 4 4 end");
  CHECK(delays.delay_of("192.0.2.2", start) == Milliseconds(1000));
  CHECK(delays.delay_of("192.0.2.1", start + std::chrono::seconds(61)) == Milliseconds(1000));
}

}  // namespace mailroom::test::submission_test
