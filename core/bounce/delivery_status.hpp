// The part message/delivery-status (RFC 3464), and the judgement of its fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bounce/bounce.hpp"
#include "bounce/mail_parts.hpp"

namespace mailroom::bounce {

/// The fields of one recipient, as they stand in a report.
struct RecipientFields {
  std::string original{};
  std::string final{};
  std::string action{};
  std::string status{};
  std::string diagnostic{};
  std::string remote_mta{};
  std::string category{};     ///< PowerMTA's own judgement
  bool is_permanent = false;  ///< a provider has judged that the address takes no mail
};

/// What the fields say, where there is no text for people.
BounceRecipient judge_recipient(const RecipientFields& fields);

/// The address of a field as `rfc822; <Ada@Example.org>`, with the domain in lower case; empty if it is none,
/// but a pipe or a file.
std::string report_address(std::string_view field);

/// Adds the addresses of a field as `"Lovelace, Ada" <ada@example.org>, bob@example.org` that are not there
/// yet: at most `limit` in all.
void add_addresses(std::string_view value, std::size_t limit, std::vector<std::string>& addresses);

/// `text` as one line, cut between two characters at max_diagnostic.
std::string short_line(std::string_view text);

/// The text that `+XX` of xtext (RFC 3461) stands for; the text itself if that is no line of UTF-8.
std::string decode_xtext(std::string_view text);

/// Adds the recipients of all such parts of `mail`, and the envelope's id.
void read_delivery_status(const MailParts& mail, Bounce& bounce);

/// The same for a report whose fields stand within the text, since something on the way lost its parts.
void read_delivery_status_in_text(const MailParts& mail, Bounce& bounce);

/// Adds the recipients that the field X-Failed-Recipients names: Exim and Google set it where they send no
/// report, and their text has the reasons.
void read_failed_recipients(const MailParts& mail, Bounce& bounce);

/// Adds the recipients that the text for people names, judged by what it says of each.
void read_recipients_in_text(const MailParts& mail, Bounce& bounce);

/// The recipient that the headers of the mail that came back name; empty if they name none, or several.
std::string original_recipient(const MailParts& mail);

/// Adds that recipient, judged by the text: some reports name none.
void read_original_recipient(const MailParts& mail, Bounce& bounce);

}  // namespace mailroom::bounce
