// Does a DKIM signature of a mail that was received cover what lets its reader unsubscribe by one click?
// Whether the signature holds is said by the receiver, in Authentication-Results.

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "bounce/mail_parts.hpp"
#include "doctor/subject.hpp"

namespace mailroom::doctor {
namespace {

constexpr std::size_t most_of_header = 1U << 20U;  ///< bytes
constexpr std::array<const char*, 2> for_one_click{"List-Unsubscribe", "List-Unsubscribe-Post"};

/// The value of a tag of a signature (RFC 6376, section 3.2), without blanks and in lower case.
std::string tag_value(const std::string& signature, std::string_view name) {
  for (const auto tag : split(signature, ';')) {
    const auto equals = std::min(tag.find('='), tag.size());
    if (trimmed(tag.substr(0, equals)) != name || equals == tag.size()) continue;
    auto value = lower_case(tag.substr(equals + 1));
    std::erase_if(value, [](unsigned char c) { return std::isspace(c) != 0; });
    return value;
  }
  return {};
}

/// Those of the fields for one click that a signature does not cover.
std::vector<std::string> left_out_by(const std::string& signature) {
  const auto names = tag_value(signature, "h");
  const auto covered = split(names, ':');
  std::vector<std::string> left_out;
  for (const auto* field : for_one_click) {
    if (std::ranges::find(covered, lower_case(field)) == covered.end()) left_out.emplace_back(field);
  }
  return left_out;
}

std::string beginning_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most_of_header, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.is_open())
    throw Error(ExitCode::failed, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

Findings check_signature(Subject& subject) {
  const auto& path = subject.sources.received_mail;
  if (path.empty()) return {};
  const auto blocks = bounce::read_field_blocks(beginning_of(path), 1);
  const auto fields = blocks.empty() ? bounce::HeaderFields{} : blocks.front();
  for (const auto* field : for_one_click) {
    if (fields.has(lower_case(field))) continue;
    return {warning(fmt::format("the mail has no {}", field), {},
                    "look at a received mail with a topic, with its whole header: docs/unsubscribe.md")};
  }
  std::vector<std::string> gaps;
  for (const auto& [name, value] : fields.all()) {
    if (name != "dkim-signature") continue;
    const auto domain = printable(tag_value(value, "d"));
    const auto left_out = left_out_by(value);
    if (left_out.empty())
      return {fine(fmt::format("that of {} covers {}", domain, joined(for_one_click, " and ")))};
    gaps.push_back(fmt::format("that of {} leaves out {}", domain, joined(left_out, " and ")));
  }
  if (gaps.empty()) gaps.emplace_back("the mail has none");
  return {warning(joined(gaps, ", ") + ", so mail programs offer no unsubscribing by one click", {},
                  "let what signs your mails cover both headers: docs/unsubscribe.md")};
}

}  // namespace mailroom::doctor
