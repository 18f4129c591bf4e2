// Puts the whole message of a mail together, as SMTP carries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "mail/address.hpp"
#include "mail/configured_mail.hpp"

namespace mailroom::mail {

// Headers as RFC 5322 and RFC 2047 want them: printable ASCII, folded at 76 columns. The values are printable
// UTF-8 (is_printable()); with anything else, such as a line end, the result is not a header.

/// Appends `Name: value` and CRLF for free text, such as a subject. Text that is not plain ASCII, or could
/// not be folded, becomes encoded words of at most 75 columns.
void append_text_header(std::string& out, std::string_view name, std::string_view value);

/// Appends `Name: value` and CRLF for a value in ASCII whose syntax is unknown: folded at blanks where
/// possible, otherwise as it is.
void append_raw_header(std::string& out, std::string_view name, std::string_view value);

/// Appends `Name: display name <local@domain>` and CRLF, with a line for each of several. A non-ASCII local
/// part is written as it is.
void append_mailboxes_header(std::string& out, std::string_view name, const std::vector<Mailbox>& mailboxes);

/// `Fri, 21 Nov 2026 09:30:15 +0000` . A time outside the years 1970 to 9999 becomes
/// the nearest one within.
std::string date_header_text(Moment moment);

/// Of base64 and quoted-printable (RFC 2045, sections 6.7 and 6.8).
constexpr std::size_t longest_encoded_line = 76;

/// Appends `text` in quoted-printable (RFC 2045, section 6.7): printable ASCII, lines of at most 76 columns
/// that end in CRLF, the last one too. LF and CRLF of the text are line ends; a CR alone is encoded.
///
/// A dot at the start of a line is encoded, so that a relay that handles it wrongly removes nothing, and so
/// is the F of `From ` there, which a mailbox file would change. An equals sign is always followed by two
/// hexadecimal digits or a line end, so no line of the result contains `=_`.
void append_quoted_printable(std::string& out, std::string_view text);

/// A file that goes with a mail.
struct Attachment {
  std::string name{};          ///< as its reader sees it; may be empty
  std::string content_type{};  ///< `image/png`; empty for application/octet-stream
  std::string content_id{};    ///< by which HTML may show it as cid:ID; or empty
  std::string bytes{};
};

/// True for `text/calendar` with a `method`, such as REQUEST (RFC 6047): a mail program shows its buttons for
/// one that is an alternative of the text.
bool is_invitation(std::string_view content_type);
/// Of the file that an invitation is, too.
constexpr auto invitation_file_type = "application/ics";

/// What differs from one mail to the next.
struct MailContent {
  Moment date{};
  std::string queue{};
  std::string key{};  ///< of the mail: letters and digits, at least one
  std::int64_t token = 0;
  std::int64_t message = 0;            ///< of which this mail is a copy; 0 for that of a token alone
  std::vector<Mailbox> to{};           ///< as the header has them; whoever gets the mail need not be there
  std::vector<Mailbox> cc{};           ///< the same
  std::optional<Mailbox> sender{};     ///< in place of the builder's
  std::vector<Mailbox> reply_to{};     ///< the same, unless it is empty
  std::vector<ExtraHeader> headers{};  ///< beside the builder's; one replaces that of the same name
  std::string given_id{};  ///< Message-ID that an application chose, with angle brackets; empty for none
  std::optional<Address> recipient{};  ///< who would get the mail, if another address gets it
  std::string subject{};
  std::optional<std::string> text{};  ///< it or the HTML, or both
  std::optional<std::string> html{};
  std::vector<Attachment> attachments{};
};

/// The id of the mail for `token` of `queue`, without angle brackets: `QUEUE.KEY.TOKEN.mailroom@domain`, or
/// `QUEUE.KEY.mMESSAGE.mailroom@domain` for all copies of a message. Two tokens, messages or queues never
/// have the same id; the key tells two databases apart, and a mail that is sent again on purpose from the
/// first. Bytes of the queue's name other than letters, digits, hyphens and underscores become `=XX`.
std::string make_message_id(const MailContent& content, std::string_view domain);

/// Appends the headers of the body, Content-Type first, an empty line, and the body: text, HTML and an
/// invitation as multipart/alternative, HTML with the files it shows as multipart/related, and all of it with
/// other files, the invitation among them, as multipart/mixed. The boundaries are made of `id`.
void append_mime_body(std::string& out, const MailContent& content, std::string_view id);

/// Why these files cannot go with a mail; empty if they can.
std::string problem_of_attachments(const std::vector<Attachment>& attachments);

/// Builds complete messages (RFC 5322) from one sender, ready for DATA apart from the doubling of dots. The
/// bytes depend on the arguments alone, so each attempt sends the same. They are ASCII unless an address
/// needs SMTPUTF8. Several threads may use one builder.
class MessageBuilder {
 public:
  /// Throws Error(configuration) if a name or a header has a control character or invalid UTF-8.
  MessageBuilder(const Mailbox& from, const std::vector<Mailbox>& reply_to,
                 const std::vector<ExtraHeader>& headers);

  /// The message. Refuses control characters, line ends among them, in whatever becomes a header, invalid
  /// UTF-8 and a NUL in text and HTML, a mail without either, attachments as problem_of_attachments(), a
  /// queue's name of more than 63 octets, and a given Message-ID that is not of the sender's domain.
  std::variant<std::string, Refusal> build(const MailContent& content) const;

  /// That of the mail, without angle brackets: the given one, or make_message_id().
  std::string message_id(const MailContent& content) const;

  /// The sender's address, or that for replies, if it needs SMTPUTF8; see needs_smtputf8() for a recipient's.
  /// Else empty.
  const std::string& utf8_sender() const { return utf8_sender_; }

 private:
  const std::string& domain_of(const MailContent& content) const;
  void append_senders(std::string& message, const MailContent& content) const;

  std::string from_header_;
  std::string reply_to_header_;  ///< empty for none
  std::vector<ExtraHeader> headers_;
  std::string extra_headers_;  ///< Auto-Submitted and the like, and the operator's
  std::string domain_;
  std::string utf8_sender_;
};

}  // namespace mailroom::mail
