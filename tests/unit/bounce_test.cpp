// What comes back after a relay took a mail: reports, complaints, automatic replies, and mails that are none.

#include "bounce/bounce.hpp"

#include <ctime>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "bounce/delivery_status.hpp"
#include "bounce/evidence.hpp"
#include "bounce/judgement.hpp"
#include "bounce/status_code.hpp"
#include "support/bounce_text.hpp"
#include "support/catch.hpp"

namespace mailroom::test::bounce_test {

namespace {

const std::string report_headers =
    "Return-Path: <>\r\n"
    "Delivered-To: bounce+17@Shop.Example\r\n"
    "From: Mail Delivery System <MAILER-DAEMON@relay.example>\r\n"
    "To: Shop <bounce+17@shop.example>\r\n"
    "Subject: Undelivered Mail Returned to Sender\r\n"
    "Auto-Submitted: auto-replied\r\n"
    "MIME-Version: 1.0\r\n";

/// A notification with this text, report and last part.
std::string report(const std::string& text, const std::string& fields, const std::string& original) {
  return report_headers +
         "Content-Type: multipart/report; report-type=delivery-status; boundary=\"=cut\"\r\n\r\n"
         "--=cut\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" +
         text + "\r\n--=cut\r\nContent-Type: message/delivery-status\r\n\r\n" + fields +
         "\r\n--=cut\r\nContent-Type: message/rfc822\r\n\r\n" + original + "\r\n--=cut--\r\n";
}

const std::string our_mail =
    "Message-ID: <signup-42@shop.example>\r\nTo: ada@mail.example\r\nSubject: Welcome\r\n\r\nHello\r\n";

/// A notification about one recipient.
std::string report_of(const std::string& recipient_fields) {
  return report(
      "It was not delivered.",
      "Reporting-MTA: dns; relay.example\r\nOriginal-Envelope-Id: m+2B1+3D\r\n\r\n" + recipient_fields,
      our_mail);
}

std::string feedback(const std::string& fields, const std::string& original) {
  return "From: abuse@mail.example\r\nTo: fbl@shop.example\r\nSubject: Abuse report\r\n"
         "Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n"
         "--b\r\nContent-Type: text/plain\r\n\r\nSomebody complained.\r\n"
         "--b\r\nContent-Type: message/feedback-report\r\n\r\n" +
         fields + "\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n" + original + "\r\n--b--\r\n";
}

std::string read(const std::string& mail) {
  return recipients_of(bounce::read_bounce(mail));
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

}  // namespace

TEST_CASE("a notification says what it is about, and for whom") {
  const auto bounce = bounce::read_bounce(report_of(
      "Original-Recipient: rfc822;Ada@Mail.Example\r\nFinal-Recipient: RFC822; <a.lovelace@store.example>\r\n"
      "Action: failed\r\nStatus: 5.0.0\r\nRemote-MTA: dns; mx.mail.example\r\n"
      "Diagnostic-Code: smtp; 550 5.1.1 <a.lovelace@store.example>:\r\n    User unknown\r\n"));
  REQUIRE(bounce);
  CHECK(bounce->is_standard);
  CHECK(bounce->envelope_id == "m+1=");
  CHECK(bounce->message_id == "signup-42@shop.example");
  CHECK(bounce->to == std::vector<std::string>{"bounce+17@shop.example"});
  CHECK(recipients_of(bounce) == "hard user_unknown 5.1.1 550 Ada@mail.example");
  CHECK(bounce->recipients.front().remote_mta == "mx.mail.example");
  CHECK(bounce->recipients.front().diagnostic == "550 5.1.1 <a.lovelace@store.example>: User unknown");
}

TEST_CASE(
    "the same report with line feeds, in an envelope line, encoded or in another charset reads the same") {
  const std::string fields =
      "Final-Recipient: rfc822; ada@mail.example\nAction: failed\nStatus: 5.2.2\n"
      "Diagnostic-Code: smtp; 552 mailbox full\n";
  const std::string wanted = "soft mailbox_full 5.2.2 552 ada@mail.example";
  std::string plain;
  for (const char c : report_of(fields))
    if (c != '\r') plain += c;
  CHECK(read(plain) == wanted);
  CHECK(read("From MAILER-DAEMON Thu Jan  1 00:00:00 2026\n" + plain) == wanted);
  CHECK(read("Content-Type: message/delivery-status\nContent-Transfer-Encoding: base64\n\n"
             "RmluYWwtUmVjaXBpZW50OiByZmM4MjI7IGFkYUBtYWlsLmV4YW1wbGUKQWN0aW9uOiBmYWlsZWQK"
             "U3RhdHVzOiA1LjIuMgpEaWFnbm9zdGljLUNvZGU6IHNtdHA7IDU1MiBtYWlsYm94IGZ1bGwK\n") == wanted);
}

TEST_CASE("several recipients have a judgement each, with and without empty lines between them") {
  const std::string first = "Final-Recipient: rfc822;a@mail.example\r\nAction: failed\r\nStatus: 5.1.1\r\n";
  const std::string second =
      "Original-Recipient: b@mail.example\r\nFinal-Recipient: rfc822;b@mail.example\r\nAction: delayed\r\n"
      "Status: 4.4.1\r\n";
  const std::string third = "Final-Recipient: rfc822;c@mail.example\r\nAction: relayed\r\nStatus: 2.0.0\r\n";
  const std::string wanted =
      "hard user_unknown 5.1.1 0 a@mail.example\n"
      "delayed network 4.4.1 0 b@mail.example\n"
      "delivered delivered 2.0.0 0 c@mail.example";
  CHECK(read(report_of(first + "\r\n" + second + "\r\n" + third)) == wanted);
  CHECK(read(report_of(first + second + third)) == wanted);
}

TEST_CASE("the text for people counts where the report has no words") {
  const std::string fields =
      "Reporting-MTA: dns; relay.example\r\n\r\n"
      "Final-Recipient: rfc822;a@mail.example\r\nAction: failed\r\nStatus: 5.0.0\r\n\r\n"
      "Final-Recipient: rfc822;b@mail.example\r\nAction: failed\r\nStatus: 5.0.0\r\n";
  CHECK(read(report("Not delivered:\r\n\r\na@mail.example: 550 5.1.1 No such user\r\n"
                    "b@mail.example: 552 5.2.2 Over quota\r\n",
                    fields, our_mail)) ==
        "hard user_unknown 5.1.1 550 a@mail.example\nsoft mailbox_full 5.2.2 552 b@mail.example");
}

TEST_CASE("a server that took the recipient and refused the content does not say that there is none") {
  const std::string fields =
      "Final-Recipient: rfc822;a@mail.example\r\nAction: failed\r\nStatus: 5.1.1\r\n"
      "Diagnostic-Code: smtp; 550 User unknown\r\n";
  const std::string said = "<a@mail.example>: host mx.mail.example said: 550 User unknown (in reply to ";
  CHECK(read(report(said + "RCPT TO command)", fields, our_mail)).starts_with("hard user_unknown"));
  CHECK(read(report(said + "end of DATA command)", fields, our_mail)).starts_with("soft filtered"));
}

TEST_CASE("a report whose parts got lost on the way is read from the text") {
  const auto bounce = bounce::read_bounce(report_headers +
                                          "Content-Type: text/plain\r\n\r\nSorry.\r\n\r\n"
                                          "Reporting-MTA: dns; relay.example\r\n\r\n"
                                          "Final-Recipient: rfc822; ada@mail.example\r\nAction: failed\r\n"
                                          "Status: 5.1.2\r\n\r\nTo: eve@mail.example\r\n\r\nHello\r\n");
  CHECK(recipients_of(bounce) == "hard host_unknown 5.1.2 0 ada@mail.example");
  CHECK(!bounce->is_standard);
}

TEST_CASE("recipients in the headers have their reasons in the text") {
  const std::string headers =
      "From: Mail Delivery System <Mailer-Daemon@relay.example>\r\n"
      "To: bounce+17@shop.example\r\nSubject: Mail delivery failed\r\n";
  const std::string text =
      "\r\nA message that you sent could not be delivered:\r\n\r\n"
      "  ada@mail.example\r\n    host mx.mail.example: 550 5.1.1 User unknown\r\n\r\n"
      "  bob@mail.example\r\n    host mx.mail.example: 552 5.2.2 Over quota\r\n\r\n"
      "------ This is a copy of the message ------\r\n\r\nada@mail.example: full\r\n";
  const auto bounce =
      bounce::read_bounce("X-Failed-Recipients: ada@mail.example,\r\n bob@mail.example\r\n" + headers + text);
  CHECK(recipients_of(bounce) ==
        "hard user_unknown 5.1.1 550 ada@mail.example\nsoft mailbox_full 5.2.2 552 bob@mail.example");
  CHECK(!bounce->is_standard);
  CHECK(bounce->recipients.front().diagnostic == "host mx.mail.example: 550 5.1.1 user unknown");
}

TEST_CASE("a report without a block for the recipient is about the one that the mail has") {
  CHECK(read(report("The error was: 550 5.1.1 No such user", "Reporting-MTA: dns; relay.example\r\n",
                    our_mail)) == "hard user_unknown 5.1.1 550 ada@mail.example");
}

TEST_CASE("a notification that a gateway wraps is read") {
  const auto bounce = bounce::read_bounce(
      report_headers +
      "Content-Type: multipart/mixed; boundary=w\r\n\r\n--w\r\n\r\nScanned.\r\n"
      "--w\r\nContent-Type: message/rfc822\r\n\r\n" +
      report_of("Final-Recipient: rfc822;a@mail.example\r\nAction: failed\r\nStatus: 5.1.1\r\n") +
      "\r\n--w--\r\n");
  CHECK(recipients_of(bounce) == "hard user_unknown 5.1.1 0 a@mail.example");
  CHECK(bounce->message_id == "signup-42@shop.example");
}

TEST_CASE("a pipe is no address, and the one that was sent to may stand in the headers") {
  const auto fields =
      "Final-Recipient: rfc822;|/usr/bin/filter ada@mail.example\r\nAction: failed\r\nStatus: 5.3.0\r\n";
  CHECK(read(report_of(fields)) == "undetermined undetermined 5.3.0 0 ");
  CHECK(read("X-Failed-Recipients: ada@mail.example\r\n" + report_of(fields)) ==
        "undetermined undetermined 5.3.0 0 ada@mail.example");
}

TEST_CASE("a feedback report is a complaint, unless it says that it is none") {
  const auto complaint = bounce::read_bounce(
      feedback("Feedback-Type: abuse\r\nVersion: 1\r\nOriginal-Rcpt-To: <ada@mail.example>\r\n"
               "Original-Envelope-Id: 42\r\nOriginal-Rcpt-To: bob@mail.example\r\n",
               our_mail));
  CHECK(recipients_of(complaint) ==
        "complaint feedback - 0 ada@mail.example\ncomplaint feedback - 0 bob@mail.example");
  CHECK(complaint->is_standard);
  CHECK(complaint->envelope_id == "42");
  CHECK(complaint->message_id == "signup-42@shop.example");
  CHECK(read(feedback("Feedback-Type: fraud\r\n", our_mail)) == "complaint feedback - 0 ada@mail.example");
  CHECK(read(feedback("Feedback-Type: auth-failure\r\n", "REDACTED")) == "undetermined feedback - 0 ");
  CHECK(read(feedback("Feedback-Type: not-spam\r\n", our_mail)).starts_with("undetermined feedback"));
}

TEST_CASE("an automatic reply is one, and a mail of a person or a program is not") {
  const std::string rest = "Subject: Re: Welcome\r\nIn-Reply-To: <signup-42@shop.example>\r\n\r\nHello\r\n";
  const std::string from = "From: \"Lovelace, Ada\" <ada@Mail.example>\r\nTo: shop@shop.example\r\n";
  const auto reply = bounce::read_bounce(from + "Auto-Submitted: auto-replied (vacation)\r\n" + rest);
  CHECK(recipients_of(reply) == "auto_reply vacation - 0 ada@mail.example");
  CHECK(reply->message_id == "signup-42@shop.example");
  CHECK(read(from + "Precedence: auto_reply\r\n" + rest).starts_with("auto_reply"));
  CHECK(read(from + "Subject: Automatic reply: Welcome\r\n\r\nHello").starts_with("auto_reply"));
  CHECK(read(from + "Subject: =?utf-8?q?R=C3=A9ponse_automatique?=\r\n\r\n").starts_with("auto_reply"));
  CHECK(read(from + rest) == "no bounce");
  // What answers may have an empty sender, and repeats a subject of ours, which may be any.
  CHECK(read("Return-Path: <>\r\n" + from +
             "Subject: Re: Delivery report of your parcel\r\n"
             "In-Reply-To: <signup-42@shop.example>\r\n\r\nthanks") == "no bounce");
  CHECK(read("Return-Path: <>\r\n" + from +
             "Subject: Undeliverable mail: what we do\r\nAuto-Submitted: auto-replied\r\n"
             "In-Reply-To: <signup-42@shop.example>\r\n\r\nI am away")
            .starts_with("auto_reply"));
  CHECK(read(from +
             "Auto-Submitted: auto-generated\r\nPrecedence: bulk\r\nList-Unsubscribe: <https://a>\r\n" +
             rest) == "no bounce");
  CHECK(read(from + "Subject: My user is unknown, mailbox full\r\n\r\n550 5.1.1 user unknown") ==
        "no bounce");
}

TEST_CASE("a bounce in no standard form is recognised, and one that somebody forwards is none") {
  const auto bounce = bounce::read_bounce(
      "From: MAILER-DAEMON@mail.example\r\nTo: bounce+17@shop.example\r\nSubject: failure notice\r\n\r\n"
      "Hi. This is the mail program.\r\n<ada@mail.example>:\r\nSorry, no mailbox here by that name.\r\n");
  REQUIRE(bounce);
  CHECK(recipients_of(bounce) == "hard user_unknown - 0 ada@mail.example");
  CHECK(!bounce->is_standard);
  CHECK(bounce->to == std::vector<std::string>{"bounce+17@shop.example"});
  CHECK(read("From: gateway@mail.example\r\nSubject: Mail delivery failed: returned\r\n\r\nNo").empty());
  CHECK(read("From: ada@mail.example\r\nSubject: Re: Mail delivery failed\r\n\r\nNo") == "no bounce");
  CHECK(read("From: ada@mail.example\r\nSubject: Fwd: what is this?\r\n"
             "Content-Type: multipart/mixed; boundary=f\r\n\r\n--f\r\nContent-Type: message/rfc822\r\n\r\n" +
             report_of("Final-Recipient: rfc822;a@mail.example\r\nAction: failed\r\n") + "\r\n--f--\r\n") ==
        "no bounce");
}

TEST_CASE("a text for people names recipients in many forms, and each has its own words") {
  const auto read_text = [](const std::string& text) {
    return read(
        "From: MAILER-DAEMON@mx.example\r\nTo: bounce+17@shop.example\r\nSubject: failure notice\r\n\r\n" +
        text);
  };
  const std::string two =
      "hard user_unknown 5.1.1 550 ada@mail.example\nsoft mailbox_full 5.2.2 552 bob@mail.example";
  // Exim has no empty line between them.
  CHECK(
      read_text(
          "The following addresses failed:\r\n\r\n"
          "  ada@mail.example\r\n    SMTP error from remote mail server after RCPT TO:<ada@mail.example>:\r\n"
          "    host mx.mail.example: 550 5.1.1 user unknown\r\n"
          "  bob@mail.example\r\n    SMTP error from remote mail server after RCPT TO:<bob@mail.example>:\r\n"
          "    host mx.mail.example: 552 5.2.2 mailbox is full\r\n") == two);
  // sendmail, before there were reports
  CHECK(read_text("   ----- Transcript of session follows -----\r\nWhile talking to mx.mail.example:\r\n"
                  ">>> RCPT To:<ada@mail.example>\r\n<<< 550 5.1.1 No such user\r\n"
                  "550 <ada@mail.example>... User unknown\r\n"
                  "While talking to mx.mail.example:\r\n>>> RCPT To:<bob@mail.example>\r\n"
                  "<<< 552 5.2.2 mailbox full\r\n552 <bob@mail.example>... Service unavailable\r\n") == two);
  CHECK(read_text("<ada@mail.example>:\r\nSorry, no mailbox here. (#5.1.1)\r\n") ==
        "hard user_unknown 5.1.1 0 ada@mail.example");
  CHECK(read_text("Unknown user: ada@mail.example\r\n\r\nOriginal message follows.\r\n\r\n"
                  "From: bob@shop.example\r\nTo: eve@mail.example\r\n") ==
        "hard user_unknown - 0 ada@mail.example");
  CHECK(read_text("ada@mail.example<mailto:ada@mail.example>\r\nIt could not be found.\r\n") ==
        "hard user_unknown - 0 ada@mail.example");
  // The sender of what is sent back is no recipient, and the one it was for is, if nothing else is named.
  const auto back = bounce::read_bounce(
      "From: MAILER-DAEMON@mx.example\r\nSubject: failure notice\r\n\r\n"
      "Your mail from bob@shop.example was refused: no such user\r\n\r\n"
      "--- Below this line is a copy of the message.\r\n\r\nMessage-ID: <17@shop.example>\r\n"
      "From: Bob <bob@shop.example>\r\nTo: Ada <ada@mail.example>\r\n\r\nHello\r\n");
  CHECK(recipients_of(back) == "hard user_unknown - 0 ada@mail.example");
  CHECK(back->message_id == "17@shop.example");
  CHECK(read("From: MAILER-DAEMON@mx.example\r\nSubject: failure notice\r\nContent-Type: text/html\r\n\r\n"
             "<html><style>p {}</style><p>No mailbox: &lt;ada@mail.example&gt;<br>none</p></html>") ==
        "hard user_unknown - 0 ada@mail.example");
}

TEST_CASE("what strangers make to cost much is read as far as a report goes") {
  const std::string head = "From: MAILER-DAEMON@mx.example\r\nSubject: failure notice\r\n";
  std::string deep = head + "Content-Type: multipart/mixed; boundary=b0\r\n\r\n";
  for (int i = 1; i < 20000; ++i)
    deep += fmt::format("--b{}\nContent-Type: multipart/mixed; boundary=b{}\n\n", i - 1, i);
  CHECK(bounce::read_bounce(deep));
  CHECK(bounce::read_bounce(head + repeated("Content-Type: message/rfc822\n\n", 30000)));
  CHECK(bounce::read_bounce(head + "Content-Type: multipart/mixed; boundary=b\n\n" +
                            repeated("--b\n\n", 200000)));
  CHECK(bounce::read_bounce(head + repeated("a:\n", 300000)));
  CHECK(bounce::read_bounce(head + "\n" + repeated("<ada@mail.example>:\n", 50000)));
}

TEST_CASE("words, status and code have the reason of the table") {
  struct Row {
    const char* diagnostic;
    const char* status;
    const char* judgement;
  };
  for (const auto& row : std::vector<Row>{
           {"550 User unknown (in reply to RCPT TO command)", "", "hard user_unknown"},
           {"550 User unknown", "", "soft filtered"},
           {"550 5.7.1 User unknown", "5.7.1", "soft filtered"},
           {"User unknown", "", "hard user_unknown"},
           {"550 5.1.1 <a@b.example>... User doesn’t exist", "5.1.1", "hard user_unknown"},
           {"550 No mailbox here by that name (in reply to RCPT TO command)", "5.0.0", "hard user_unknown"},
           {"after RCPT TO:<a@b.example>: 550 Utilisateur inconnu", "", "hard user_unknown"},
           {"550 5.1.10 Пользователь a@b.example не найден", "5.1.10", "hard user_unknown"},
           {"Utente non elencato nella directory Domino", "5.0.0", "hard user_unknown"},
           {"550 5.1.1 Mailbox is inactive", "5.1.1", "hard user_unknown"},
           {"550 5.2.1 Inactive account", "5.2.1", "soft suspended"},
           {"554 delivery error: dd This user doesn't have a yahoo.com account", "5.0.0",
            "hard user_unknown"},
           {"Name server: .: host not found", "5.1.2", "hard not_accept"},
           {"550 5.1.10 RESOLVER.ADR.RecipientNotFound; not found", "5.1.10", "hard user_unknown"},
           {"550 5.4.310 DNS domain b.example does not exist", "5.4.310", "hard host_unknown"},
           {"550 5.7.124 The sender does not have permission to send to the group; not found", "5.7.124",
            "soft policy"},
           {"The group may not exist, or you may not have permission to post messages", "", "soft policy"},
           {"550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required", "5.7.133",
            "soft policy"},
           {"550 5.7.999 No", "5.7.999", "soft policy"},
           {"550-5.1.1 The account that you tried to reach does not 550-5.1.1 exist.", "5.1.1",
            "hard user_unknown"},
           {"550 5.4.1 [a@b.example]: Recipient address rejected: Access denied", "5.4.1",
            "hard user_unknown"},
           {"450 4.1.1 User unknown in local table", "4.1.1", "soft user_unknown"},
           {"550 5.2.1 User unknown", "5.2.1", "soft filtered"},
           {"550 5.2.0 User unknown", "5.2.0", "soft filtered"},
           {"550 5.1.1 User unknown; mail for former users with full mailboxes is banned", "5.1.1",
            "hard user_unknown"},
           {"550 unknown-user@spam.example was refused", "", "soft policy"},
           {"5.1.0 - Unknown address error 550-'Access denied'", "5.1.0", "soft policy"},
           {"Host or domain name not found. Name service error for name=b.example type=A: Host not found",
            "5.4.4", "hard host_unknown"},
           {"Name service error for name=b.example type=MX: Host not found, try again", "4.4.3",
            "soft network"},
           {"550 5.1.7 That domain does not exist", "5.1.7", "soft sender_rejected"},
           {"Host or domain name not found: type=MX: Malformed or unexpected name server reply", "5.4.4",
            "soft network"},
           {"553 5.1.8 Domain of sender address a@b.example does not exist", "5.1.8", "soft sender_rejected"},
           {"550 Domain b.example does not accept mail (nullMX)", "", "hard not_accept"},
           {"550 We do not like you: your server does not accept mail from dynamic IP", "", "soft blocked"},
           {"551 User has moved; please try b@c.example", "", "hard has_moved"},
           {"554 aliasing/forwarding loop broken", "5.4.6", "soft network"},
           {"552 5.2.2 Mailbox full", "5.2.2", "soft mailbox_full"},
           {"554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org", "5.7.1",
            "soft blocked"},
           {"550 5.7.1 Message rejected due to DMARC policy", "5.7.1", "soft authentication"},
           {"554 5.7.1 Relay access denied", "5.7.1", "soft relaying_denied"},
           {"550 5.7.1 This looks like spam", "5.7.1", "soft spam"},
           {"550 5.7.1 No", "5.7.1", "soft policy"},
           {"552 5.3.4 Message size exceeds fixed limit", "5.3.4", "soft message_too_big"},
           {"450 4.2.0 Greylisted, try again later", "4.2.0", "soft rate_limited"},
           {"550 Account disabled", "", "soft suspended"},
           {"connect to mx.b.example[192.0.2.1]:25: Connection refused", "5.0.0", "soft network"},
           {"", "5.1.1", "hard user_unknown"},
           {"", "5.1.10", "hard not_accept"},
           {"", "5.0.0", "undetermined undetermined"},
           {"550 No", "", "undetermined undetermined"},
           {"451 Not now", "", "soft undetermined"},
           {"556", "", "hard not_accept"},
       }) {
    INFO(row.diagnostic << " " << row.status);
    const auto judgement =
        bounce::judge_bounce({.action = "failed",
                              .status = row.status,
                              .code = bounce::find_reply_code(row.diagnostic),
                              .diagnostic = row.diagnostic,
                              .text = "",
                              .is_at_recipient = bounce::is_at_recipient(lower_case(row.diagnostic))});
    CHECK(fmt::format("{} {}", bounce::bounce_kind_name(judgement.kind),
                      bounce::bounce_reason_name(judgement.reason)) == row.judgement);
  }
}

TEST_CASE("an unknown user is no hard bounce if something else in the report says that the address exists") {
  const std::string recipient = "Final-Recipient: rfc822; ada@mail.example\r\nAction: failed\r\n";
  const auto gone = recipient + "Status: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 User unknown\r\n";
  const auto disabled = recipient + "Status: 5.2.1\r\nDiagnostic-Code: smtp; 550 5.2.1 User unknown\r\n";
  const auto judged = [](const std::string& text, const std::string& fields,
                         const std::string& by = "mx.example") {
    return read(report(text, "Reporting-MTA: dns; " + by + "\r\n\r\n" + fields, our_mail)).substr(0, 17);
  };
  CHECK(judged("Sorry.", gone) == "hard user_unknown");
  CHECK(judged("Your message was rejected: not enough disk space", gone).starts_with("soft mailbox_full"));
  CHECK(judged("User unknown. Or the mailbox is full.", gone) == "hard user_unknown");
  CHECK(judged("Sorry.", gone, "inbound-smtp.eu-west-1.amazonaws.com").starts_with("soft filtered"));
  CHECK(judged("Sorry.", disabled).starts_with("soft filtered"));
  CHECK(judged("<ada@mail.example>: 550 5.2.1 User unknown (in reply to RCPT TO command)", disabled) ==
        "hard user_unknown");
  CHECK(judged("Sorry.", disabled + "X-PowerMTA-BounceCategory: bad-mailbox\r\n") == "hard user_unknown");
}

TEST_CASE("codes are found where they stand alone") {
  CHECK(bounce::find_status("smtp; 550-5.7.26 no") == "5.7.26");
  CHECK(bounce::find_status("host 192.5.1.1 said 5.1.1.2, (#4.4.7).") == "4.4.7");
  CHECK(bounce::find_status("5.1").empty());
  CHECK(bounce::find_status("5.1.1234").empty());
  CHECK(bounce::find_status("5.1.1") == "5.1.1");
  CHECK(bounce::find_reply_code("host mx[192.0.2.1] said: 550 no") == 550);
  CHECK(bounce::find_reply_code("port 5500, 192.0.550.1, 5501") == 0);
  CHECK(bounce::find_reply_code("421-wait") == 421);
  CHECK(bounce::find_reply_code("ERROR_CODE :550, no") == 550);
  CHECK(bounce::find_reply_code("it said:\n550\tno") == 550);
  CHECK(bounce::find_reply_code("55") == 0);
}

TEST_CASE("an address of a report has no type, brackets or capitals in the domain") {
  CHECK(bounce::report_address("rfc822; Ada@Mail.EXAMPLE") == "Ada@mail.example");
  CHECK(bounce::report_address("<ada@mail.example>") == "ada@mail.example");
  CHECK(bounce::report_address("utf-8; ådå@mail.example") == "ådå@mail.example");
  CHECK(bounce::report_address("rfc822; ada").empty() == false);
  CHECK(bounce::report_address("rfc822; |pipe@mail.example").empty());
  CHECK(bounce::report_address("rfc822; /var/mail/ada").empty());
  CHECK(bounce::report_address("rfc822;").empty());
  CHECK(bounce::report_address("<").empty());
  CHECK(bounce::report_address("rfc822; " + std::string(400, 'a') + "@mail.example").empty());
  CHECK(bounce::decode_xtext("a+2B+3d+2") == "a++3d+2");
  CHECK(bounce::decode_xtext("a+0A") == "a+0A");
  CHECK(bounce::decode_xtext("a+FF") == "a+FF");
}

TEST_CASE("recipients, words and ids are bounded") {
  std::string fields;
  for (int i = 0; i < 1500; ++i)
    fields += fmt::format(
        "Final-Recipient: rfc822; a{}@mail.example\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n", i);
  CHECK(bounce::read_bounce(report_of(fields))->recipients.size() == bounce::bounce_limits::max_recipients);
  const auto bounce =
      bounce::read_bounce(report_of("Final-Recipient: rfc822; a@mail.example\r\nDiagnostic-Code: smtp; 550 " +
                                    repeated("ä\x01\xff", 400) + "\r\n"));
  const auto& diagnostic = bounce->recipients.front().diagnostic;
  CHECK(diagnostic.size() <= bounce::bounce_limits::max_diagnostic);
  CHECK(is_utf8(diagnostic));
  CHECK(diagnostic.find('\x01') == std::string::npos);
}

TEST_CASE("hostile mails are read in time, and without a deep stack") {
  std::string nested = "From: MAILER-DAEMON@a.example\r\n";
  for (int i = 0; i < 20000; ++i)
    nested += fmt::format("Content-Type: multipart/mixed; boundary=b{0}\r\n\r\n--b{0}\r\n", i);
  const auto ten_megabytes = std::string(10 << 20, 'a');
  const std::vector<std::string> mails{
      "",
      "\n",
      "From ",
      "From",
      std::string(1000, '\0'),
      std::string(1000, '\xff'),
      nested,
      "From: MAILER-DAEMON@a.example\r\n" + repeated("Content-Type: message/rfc822\r\n\r\n", 20000),
      "To: " + repeated("a:", 500000) + "\r\n\r\n",
      "To: " + repeated("a:\r\n ", 300000) + "\r\n\r\n",
      "To: " + repeated("(", 500000),
      repeated("Delivered-To: a@b.example\r\n", 40000) + "\r\n",
      "Subject: " + ten_megabytes,
      report("", ten_megabytes, our_mail),
      report(ten_megabytes, "Final-Recipient: rfc822; a@b.example", our_mail),
      report_of(repeated("Final-Recipient: a\r\n", 50000)),
      report_of(repeated("a: b\r\n\r\n", 100000)),
      report_of(repeated("\r\n", 500000)),
      report_of("Final-Recipient: a\r\nDiagnostic-Code: " + repeated("user ", 3000)),
      report_of("Final-Recipient: a\r\nDiagnostic-Code: " + repeated("\r\n =?utf-8?q?user?=", 700)),
      repeated("Final-Recipient: rfc822; a@b.example\n\n", 20000),
      report_headers + "\r\n" + repeated("Final-Recipient: rfc822; a@b.example\n\n", 20000),
      report_of("Final-Recipient: rfc822; a@b.example\r\nStatus: 5.1.1").substr(0, 600)};
  for (const auto& mail : mails) {
    const auto begin = std::clock();
    INFO(mail.substr(0, 60));
    CHECK_NOTHROW(bounce::read_bounce(mail));
    CHECK(std::clock() - begin < 10 * CLOCKS_PER_SEC);
  }
}

TEST_CASE("a report cut off anywhere is read as far as it goes") {
  const auto whole =
      report_of("Final-Recipient: rfc822; ada@mail.example\r\nAction: failed\r\nStatus: 5.1.1\r\n");
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const auto bounce = bounce::read_bounce(whole.substr(0, length));
    if (bounce) CHECK(bounce->recipients.size() <= 1);
  }
}

}  // namespace mailroom::test::bounce_test
