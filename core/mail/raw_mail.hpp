// What a sender needs to know of a mail that its program has made: its bytes stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace mailroom::mail {

/// The value of the first field `name`, which is in lower case, as it stands in the header, folded and
/// encoded; empty if there is none.
std::string_view raw_field(std::string_view mail, std::string_view name);

struct RawMailFacts {
  std::string author{};          ///< the first address of From; or empty
  std::string message_id{};      ///< without angle brackets; or empty
  bool has_8bit = false;         ///< octets above 127, in body or header: it needs 8BITMIME (RFC 6152)
  bool has_utf8_header = false;  ///< a header in UTF-8 (RFC 6532), which needs SMTPUTF8
};
RawMailFacts facts_of_raw_mail(std::string_view mail);

/// Its Subject as its reader sees it, one line of UTF-8; empty if there is none. The beginning of a mail
/// suffices.
std::string subject_of_raw_mail(std::string_view mail);

}  // namespace mailroom::mail
