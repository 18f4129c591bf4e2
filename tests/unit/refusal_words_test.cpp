// What providers and servers really say, and whom they mean: no mail is lost where the sender is meant.

#include <string>
#include <vector>

#include "carriers/smtp/refusal/refusal_subject.hpp"
#include "support/catch.hpp"

namespace mailroom::test::refusal_words_test {
namespace {

struct WordsRow {
  int code;
  std::string text;
};

void check_all(const std::vector<WordsRow>& rows, delivery::RefusalSubject subject) {
  for (const auto& row : rows) {
    INFO(row.code << " " << row.text);
    CHECK(static_cast<int>(smtp::subject_of_refusal(row.code, row.text, "user7@mail.example")) ==
          static_cast<int>(subject));
  }
}

}  // namespace

TEST_CASE("what providers say of an account or a sender is about everyone") {
  check_all(
      {
          // Amazon SES
          {554,
           "Message rejected: Email address is not verified. The following identities failed the check in "
           "region EU-WEST-1: no-reply@app.example"},
          {554,
           "Message rejected: Sending paused for this account. For more information, please check the inbox "
           "of the email address associated with your AWS account."},
          {554,
           "Access denied: User `arn:aws:iam::1:user/app' is not authorized to perform `ses:SendRawEmail' on "
           "resource `arn:aws:ses:eu-west-2:1:identity/app.example'"},
          // Office 365 and Exchange
          {554,
           "5.2.252 SendAsDenied; app@app.example not allowed to send as no-reply@app.example; STOREDRV"},
          {554,
           "5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException.MapiExceptionSendAsDenied; Failed to "
           "process message due to a permanent exception"},
          {550, "5.1.8 Access denied, bad outbound sender AS(42004)"},
          {550, "5.7.501 Access denied, spam abuse detected"},
          {550, "5.7.503 Access denied, banned sender"},
          {550, "5.7.606 Access denied, banned sending IP [192.0.2.1]. To request removal from this list"},
          {550, "5.7.708 Service unavailable. Access denied, traffic not accepted from this IP."},
          {550, "5.7.750 Service unavailable. Client blocked from sending from unregistered domains."},
          {550, "5.7.509 Access denied, sending domain app.example does not pass DMARC verification"},
          {550,
           "5.7.515 Access denied, sending domain app.example does not meet the required authentication "
           "level."},
          {550, "5.7.1 Client does not have permissions to send as this sender"},
          {550,
           "5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service "
           "provider since part of their network is on our block list (S3150)."},
          {451, "5.7.3 STARTTLS is required to send mail"},
          // Google
          {550,
           "5.7.26 This mail has been blocked because the sender is unauthenticated. Gmail requires all "
           "senders to authenticate with either SPF or DKIM."},
          {550,
           "5.7.26 Unauthenticated email from app.example is not accepted due to domain's DMARC policy."},
          {550,
           "5.7.1 [192.0.2.1] The IP you're using to send mail is not authorized to send email directly to "
           "our servers."},
          {550, "5.7.1 Invalid credentials for relay [192.0.2.1]. The IP address you've registered"},
          {550, "5.7.1 Daily SMTP relay limit exceeded for customer."},
          {550, "5.7.25 [192.0.2.1] The IP address sending this message does not have a PTR record setup"},
          // Others
          {550,
           "The from address does not match a verified Sender Identity. Mail cannot be sent until this error "
           "is resolved."},
          {550, "Unauthenticated senders not allowed"},
          {451, "You have exceeded your messaging limits"},
          {502, "5.7.0 Your SMTP account is not yet activated. Please contact us to request activation"},
          {502, "5.7.0 Please authenticate first"},
          {525, "5.7.1 Unauthorized IP address"},
          {550, "5.4.6 Unusual sending activity detected. Please try after sometime"},
          {553, "Relaying disallowed as no-reply@app.example"},
          {553, "Sender is not allowed to relay emails"},
          {550,
           "5.7.1 Domain sandbox1.example is not allowed to send: Free accounts are for test purposes only. "
           "Please upgrade or add the address to authorized recipients"},
          {550, "that IP address is not allowed to send"},
          {550, "From header sender domain not verified (app.example)"},
          {552, "Your account has been suspended. Please contact us to reactivate"},
          {412, "Your account is pending approval"},
          {550, "5.7.1 The 'From' address you supplied is not a Sender Signature on your account."},
          {550, "5.7.1 Unconfigured Sending Domain <app.example>"},
          {450, "The from.email domain must be verified in your account to send emails. #MS42207"},
          {450, "The app.example domain is not verified. Please, add and verify your domain"},
          {550, "5.7.0 From address is not one of your addresses"},
          {551, "5.7.1 Not authorised to send from this header address"},
          {553, "From: address not verified"},
          {501, "mail from address must be same as authorization user"},
          {553, "Mail from must equal authorized user"},
          {550, "not local sender over smtp"},
          {550, "Requested action not taken: mailbox unavailable Sender address is not allowed."},
      },
      delivery::RefusalSubject::everyone);
}

TEST_CASE("what mail servers say of a client, its name or its login is about everyone") {
  check_all(
      {
          {554,
           "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org; "
           "https://www.spamhaus.org/query/ip/192.0.2.1"},
          {554, "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using bl.spamcop.net"},
          {554, "5.7.1 Service unavailable; Sender address [no-reply@app.example] blocked using dbl.example"},
          {550,
           "5.7.1 Service unavailable, Client host [192.0.2.1] blocked using Spamhaus. To request removal "
           "from this list see https://www.spamhaus.org/query/ip/192.0.2.1 (AS16012611)"},
          {550,
           "JunkMail rejected - app1 [192.0.2.1]:4711 is in an RBL, see "
           "https://www.spamhaus.org/query/ip/192.0.2.1"},
          {550, "rejected because 192.0.2.1 is in a black list at bl.example"},
          {550,
           "Please turn on SMTP Authentication in your mail client. (app1) [192.0.2.1]:4711 is not permitted "
           "to relay through this server without authentication."},
          {550,
           "(app1) [192.0.2.1]:4711 is not permitted to relay through this server without authentication."},
          {503, "This mail server requires authentication. Please check your mail client settings."},
          {550, "5.7.1 Authentication is required for relay"},
          {530, "5.7.0 Must issue a STARTTLS command first"},
          {554, "Must issue a STARTTLS command first"},
          {451, "STARTTLS is required first"},
          {550, "Bad HELO - Host impersonating domain name [app1]"},
          {550, "Access denied - Invalid HELO name (See RFC2821 4.1.1.1)"},
          {553,
           "5.5.4 <no-reply@app.invalid>... Domain of sender address no-reply@app.invalid does not exist"},
          {550, "sender domain does not exist"},
          {550, "5.1.0 Sender denied"},
          {450, "Requested mail action not taken: mailbox unavailable. Mail send limit exceeded."},
          {552, "5.7.0 Number of messages exceeds maximum per connection"},
          {550,
           "Domain app.example has exceeded the max defers and failures per hour (5/5 (100%)) allowed. "
           "Message discarded."},
          {550, "Outgoing mail from \"no-reply@app.example\" has been suspended."},
      },
      delivery::RefusalSubject::everyone);
}

TEST_CASE("what servers say of an address without its enhanced code is about the recipient") {
  check_all(
      {
          {550, "Unrouteable address"},
          {550, "unknown user"},
          {550, "<user7@mail.example>: User not found"},
          {550, "Invalid recipient user7@mail.example"},
          {550, "Unknown recipient"},
          {550,
           "Message was not accepted -- invalid mailbox. Local mailbox user7@mail.example is unavailable"},
          {550, "sorry, no mailbox here by that name. (#5.7.17)"},
          {550, "No such mailbox"},
          {550, "Mailbox not found"},
          {550, "5.4.4 Unable to route: host not found"},
          {550, "5.4.310 DNS domain mail.example does not exist"},
      },
      delivery::RefusalSubject::recipient);
}

TEST_CASE("what may be about one recipient, his server or one mail stays unclear") {
  check_all(
      {
          {550, "5.7.510 Access denied, mail.example does not accept email from third party senders"},
          {550,
           "5.7.513 Service unavailable, Client host [192.0.2.1] blocked by mail.example using Customer Block "
           "list"},
          {554, "5.7.1 Service unavailable; Recipient address [mail.example] blocked using dbl.spamhaus.org"},
          {550, "5.7.1 sender is not allowed to send to this recipient"},
          {550, "5.7.1 You are not allowed to send mail to this list"},
          {554, "5.7.1 account suspended"},
          {550, "5.4.6 routing loop detected"},
          {554, "5.7.1 Message rejected under suspicion of SPAM"},
          {550, "Requested action not taken: mailbox unavailable"},
          {550, "5.4.1 Relay access denied"},
          // A domain that its owner has named so.
          {550, "Domain submissionquotaexceeded.example cannot be reached"},
          {550, "Domain sendasdenied.zen.spamhaus.org.example cannot be reached"},
      },
      delivery::RefusalSubject::unclear);
}

}  // namespace mailroom::test::refusal_words_test
