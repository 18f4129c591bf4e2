// What a client is told: each reply of the service, with the rule that wants it.
#pragma once

#include <string>
#include <string_view>

namespace mailroom::submission {

/// A reply of one line. The status is that of RFC 3463.
struct Reply {
  int code = 0;
  std::string_view status{};  ///< empty: the reply has none (greeting, EHLO, 334, 354)
  std::string words{};
  bool is_last = false;  ///< the connection ends after it

  bool is_refusal() const { return code >= 400; }
  /// With its line end, and without what could end the line before.
  std::string line() const;
};

/// A reply that always has the same words.
struct FixedReply {
  int code;
  const char* status;
  const char* words;
  bool is_last = false;

  operator Reply() const { return {code, status, words, is_last}; }
};

namespace replies {

inline constexpr FixedReply ok{250, "2.0.0", "ok"};
inline constexpr FixedReply sender_ok{250, "2.1.0", "ok"};
inline constexpr FixedReply recipient_ok{250, "2.1.5", "ok"};
inline constexpr FixedReply chunk_ok{250, "2.0.0", "ok"};
inline constexpr FixedReply go_on{354, "", "end with a line of one dot"};
inline constexpr FixedReply go_secure{220, "2.0.0", "go ahead"};
inline constexpr FixedReply welcome{235, "2.7.0", "welcome"};
inline constexpr FixedReply bye{221, "2.0.0", "bye", true};
// RFC 5321, 3.5.3: whoever may ask for a mailbox learns of no mailbox.
inline constexpr FixedReply try_it{252, "2.5.0", "send a mail and see"};
inline constexpr FixedReply help{214, "2.0.0", "EHLO MAIL RCPT DATA BDAT RSET NOOP AUTH STARTTLS QUIT"};

// RFC 5321, 3.8: a server that cannot go on says so, and closes.
inline constexpr FixedReply too_many_connections{421, "4.3.2", "too many connections, try again later", true};
inline constexpr FixedReply is_copy{
    421, "4.3.5", "this database is a copy of another, and mails nobody: mailroom adopt", true};
inline constexpr FixedReply is_standby{421, "4.3.5", "this database is a standby, and stores no mail", true};
inline constexpr FixedReply too_many_of_role{421, "4.7.0",
                                             "too many connections of this role, try again later", true};
inline constexpr FixedReply nobody{421, "4.7.0", "the user at your end has no name here", true};
inline constexpr FixedReply stopping{421, "4.3.2", "the service stops, try again later", true};
inline constexpr FixedReply too_slow{421, "4.4.2", "too slow", true};
inline constexpr FixedReply too_many_errors{421, "4.7.0", "too many errors", true};
inline constexpr FixedReply too_many_commands{421, "4.7.0", "too many commands without a mail", true};
inline constexpr FixedReply too_many_logins{421, "4.7.0", "too many logins", true};
inline constexpr FixedReply no_memory_within{421, "4.3.1", "too many mails at a time, try again later", true};
// A script of a browser can reach the loopback interface.
inline constexpr FixedReply no_web_server{421, "5.5.1", "this is no web server", true};

inline constexpr FixedReply unknown_command{500, "5.5.1", "there is no such command"};
inline constexpr FixedReply line_too_long{500, "5.5.6", "the line is too long", true};
// RFC 5321, 2.3.8: whoever goes on reading guesses where the command ends.
inline constexpr FixedReply bare_in_command{500, "5.5.2", "a line end is not CRLF (RFC 5321, 2.3.8)", true};
inline constexpr FixedReply bare_in_data{
    554, "5.6.0", "a line end is not CRLF (RFC 5321, 2.3.8); mailroom sendmail converts", true};
inline constexpr FixedReply hello_first{503, "5.5.1", "EHLO first"};
inline constexpr FixedReply nameless{501, "5.5.4", "the name of the client is missing"};
// RFC 5321, 3.3: MAIL within a mail, and DATA without one, are out of sequence.
inline constexpr FixedReply has_mail{503, "5.5.1", "a mail has begun already"};
inline constexpr FixedReply no_mail{503, "5.5.1", "MAIL first"};
inline constexpr FixedReply no_recipient{554, "5.5.1", "no recipient was accepted"};
// RFC 3030, 2: BDAT and DATA must not be mixed.
inline constexpr FixedReply has_chunks{503, "5.5.1", "BDAT has begun"};
inline constexpr FixedReply bad_chunk{501, "5.5.4", "write BDAT size or BDAT size LAST", true};
inline constexpr FixedReply bad_mail{501, "5.5.4", "write MAIL FROM:<address>"};
inline constexpr FixedReply bad_rcpt{501, "5.5.4", "write RCPT TO:<address>"};
inline constexpr FixedReply bad_sender{501, "5.1.7", "the sender is no address"};
inline constexpr FixedReply bad_recipient{501, "5.1.3", "the recipient is no address"};
inline constexpr FixedReply local_recipient{
    550, "5.1.3", "the recipient has no domain that mail can go to, and submission.local_to is not set"};
// RFC 6531, 3.5.
inline constexpr FixedReply utf8_sender{550, "5.6.7", "the address needs SMTPUTF8"};
inline constexpr FixedReply utf8_recipient{553, "5.6.7", "the address needs SMTPUTF8"};
inline constexpr FixedReply foreign_author{
    550, "5.7.1", "the role does not mail with this address in From (submission.senders)"};
inline constexpr FixedReply foreign_sender{550, "5.7.1",
                                           "the role does not mail from this address (submission.senders)"};
inline constexpr FixedReply bad_body{501, "5.5.4", "BODY is 7BIT or 8BITMIME"};
inline constexpr FixedReply bad_hold{
    501, "5.5.4", "HOLDFOR is a number of seconds, HOLDUNTIL a time such as 2026-11-28T12:00:00Z"};
inline constexpr FixedReply over_limit{451, "4.7.1",
                                       "the role has asked for as many mails as it may, try again later"};
inline constexpr FixedReply no_memory{452, "4.3.1", "too many mails at a time, try again later"};
inline constexpr FixedReply has_nul{554, "5.6.0", "the mail has a NUL"};
inline constexpr FixedReply no_from{554, "5.6.0", "the mail has no From"};
// RFC 5321, 6.3.
inline constexpr FixedReply loops{554, "5.4.6", "the mail has passed 50 servers: it goes round in circles"};

// RFC 4954 and RFC 8314: no password over a connection that others read.
inline constexpr FixedReply login_first{530, "5.7.0", "log in first"};
inline constexpr FixedReply secure_first{530, "5.7.0", "STARTTLS and a login first"};
inline constexpr FixedReply plain_login{538, "5.7.11", "STARTTLS first"};
inline constexpr FixedReply no_login{502, "5.5.1", "no login here"};
inline constexpr FixedReply not_now{503, "5.5.1", "not now"};
inline constexpr FixedReply no_mechanism{504, "5.5.4", "PLAIN or LOGIN"};
inline constexpr FixedReply login_given_up{501, "5.5.2", "the login was given up"};
inline constexpr FixedReply wrong_password{535, "5.7.8", "user or password is not right"};
inline constexpr FixedReply no_tls{503, "5.5.1", "no STARTTLS here"};
// RFC 3207, 4.2, and CVE-2011-0411: what came before TLS may be of somebody else.
inline constexpr FixedReply bytes_behind_starttls{554, "5.5.1", "commands came with STARTTLS", true};

inline constexpr FixedReply database_away_for_login{454, "4.7.0",
                                                    "the database does not answer, try again later"};
inline constexpr FixedReply no_password_asked{
    454, "4.7.0", "the database asks for no password: pg_hba.conf lets everyone in"};
inline constexpr FixedReply logins_full{454, "4.7.0", "too many logins at a time, try again later"};
inline constexpr FixedReply database_away{451, "4.3.0", "the database does not answer, try again later"};

}  // namespace replies
}  // namespace mailroom::submission
