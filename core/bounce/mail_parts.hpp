// The parts and header fields of a mail that a bounce may have, read by GMime.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mailroom::bounce {

/// The header fields of a mail that tell bounces, or all of a block in a report: names in lower case, values
/// unfolded and in UTF-8.
class HeaderFields {
 public:
  void add(std::string name, std::string value);
  /// The first field of that name; empty if there is none.
  const std::string& first(std::string_view name) const;
  bool has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& all() const { return fields_; }
  bool is_empty() const { return fields_.empty(); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// A value as it stands in a mail, folded and encoded (RFC 2047), as one line of UTF-8.
std::string field_text(std::string_view raw);

/// The blocks of header fields in `text`, with empty lines between them: at most `limit`.
std::vector<HeaderFields> read_field_blocks(std::string_view text, std::size_t limit);

struct MailParts {
  HeaderFields headers;
  std::string content_type;  ///< of the mail itself, as `multipart/report`
  std::string report_type;   ///< parameter of the content type (RFC 6522), in lower case; or empty
  std::string text;          ///< the first part for people, in UTF-8, and no more than its beginning
  std::string html;          ///< the first part in HTML: its words are the text if there is no other
  std::vector<std::string> deliveries;  ///< message/delivery-status
  std::vector<std::string> feedback;    ///< message/feedback-report
  bool has_original = false;       ///< had a part with the mail that it is about, or with the headers of it
  HeaderFields original;           ///< the headers of that, or of one that stands in the text
  std::vector<MailParts> wrapped;  ///< a notification within this mail: at most one
};

/// The words of an HTML text, a line for each block of it, without its tags, styles and scripts.
std::string text_of_html(std::string_view html);

/// The header fields of a mail that stands within `text`, as some servers send it back; empty if there is
/// none.
HeaderFields header_in_text(std::string_view text);

/// Reads the parts outside of mails within the mail.
MailParts read_mail_parts(std::string_view bytes);

}  // namespace mailroom::bounce
