// Finds header fields by their names, and looks for octets above 127; it parses no MIME.

#include "mail/raw_mail.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "bounce/mail_parts.hpp"

namespace mailroom::mail {
namespace {

std::string_view header_of(std::string_view mail) {
  if (mail.starts_with("\r\n")) return {};
  const auto end = mail.find("\r\n\r\n");
  return end == std::string_view::npos ? mail : mail.substr(0, end + 2);
}

/// The next field with its folded lines, which leaves `header`.
std::string_view take_field(std::string_view& header) {
  std::size_t end = 0;
  do {
    end = std::min(header.find('\n', end), header.size() - 1) + 1;
  } while (end < header.size() && (header[end] == ' ' || header[end] == '\t'));
  const auto field = header.substr(0, end);
  header.remove_prefix(end);
  return field;
}

bool has_high_octet(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) > 127; });
}

/// What is between the first angle brackets, or all of it.
std::string_view in_brackets(std::string_view text) {
  const auto begin = text.find('<');
  const auto end = text.find('>', begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) return text;
  return text.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::string_view raw_field(std::string_view mail, std::string_view name) {
  for (auto header = header_of(mail); !header.empty();) {
    const auto field = take_field(header);
    const auto colon = field.find(':');
    if (colon != std::string_view::npos && lower_case(trimmed(field.substr(0, colon))) == name)
      return field.substr(colon + 1);
  }
  return {};
}

RawMailFacts facts_of_raw_mail(std::string_view mail) {
  const auto header = header_of(mail);
  const bool has_8bit_header = has_high_octet(header);
  const auto from = bounce::field_text(raw_field(mail, "from"));
  return {.author = std::string(trimmed(in_brackets(from))),
          .message_id = std::string(trimmed(in_brackets(raw_field(mail, "message-id")))),
          .has_8bit = has_8bit_header || has_high_octet(mail.substr(header.size())),
          // Other letters, as old programs write them, are none for SMTPUTF8 either.
          .has_utf8_header = has_8bit_header && sound_utf8(header) == header};
}

std::string subject_of_raw_mail(std::string_view mail) {
  return bounce::field_text(raw_field(mail, "subject"));
}

}  // namespace mailroom::mail
