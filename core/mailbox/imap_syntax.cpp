// The server is trusted to keep the mails, not to keep to the grammar: what it is not understood in is no
// answer.

#include "mailbox/imap_syntax.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom::mailbox {
namespace {

bool is_untagged(std::string_view line, std::string_view keyword, std::string_view& rest) {
  if (!line.starts_with("* ")) return false;
  line.remove_prefix(2);
  if (lower_case(line.substr(0, keyword.size())) != keyword) return false;
  rest = line.substr(keyword.size());
  return rest.empty() || rest.front() == ' ';
}

/// What follows `* 12 FETCH `, in lower case for a search; empty for another line.
std::string_view fetch_part(std::string_view line) {
  if (!line.starts_with("* ")) return {};
  line.remove_prefix(2);
  const auto end = line.find(' ');
  if (end == std::string_view::npos || !parse_number<std::uint32_t>(line.substr(0, end))) return {};
  line.remove_prefix(end + 1);
  return lower_case(line.substr(0, 6)) == "fetch " ? line.substr(6) : std::string_view();
}

}  // namespace

std::optional<std::string> quoted_folder(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c < 0x20 || c > 0x7E) return std::nullopt;
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
    // A & begins what stands for other letters.
    if (c == '&') quoted += '-';
  }
  return quoted + '"';
}

std::optional<std::uint64_t> literal_size(std::string_view line) {
  if (!line.ends_with('}')) return std::nullopt;
  const auto begin = line.rfind('{');
  if (begin == std::string_view::npos) return std::nullopt;
  auto digits = line.substr(begin + 1, line.size() - begin - 2);
  if (digits.ends_with('+')) digits.remove_suffix(1);
  return parse_number<std::uint64_t>(digits);
}

std::vector<std::uint32_t> searched_ids(std::string_view line) {
  std::vector<std::uint32_t> ids;
  std::string_view rest;
  if (!is_untagged(line, "search", rest)) return ids;
  for (const auto word : split(rest, ' ')) {
    if (const auto id = parse_number<std::uint32_t>(word); id && *id > 0) ids.push_back(*id);
  }
  return ids;
}

std::optional<std::uint32_t> fetched_uid(std::string_view line) {
  const auto part = lower_case(fetch_part(line));
  for (auto at = part.find("uid "); at != std::string::npos; at = part.find("uid ", at + 1)) {
    if (at == 0 || (part[at - 1] != '(' && part[at - 1] != ' ')) continue;
    const auto digits = part.substr(at + 4, part.find_first_not_of("0123456789", at + 4) - at - 4);
    if (const auto uid = parse_number<std::uint32_t>(digits); uid && *uid > 0) return uid;
  }
  return std::nullopt;
}

std::optional<std::string> fetched_text(std::string_view line) {
  const auto part = fetch_part(line);
  const auto body = lower_case(part).find("body[]");
  if (body == std::string::npos) return std::nullopt;
  const auto begin = part.find_first_of("\" ", body);
  if (begin == std::string_view::npos || part.substr(begin, 2) != " \"") return std::nullopt;
  std::string text;
  for (auto i = begin + 2; i < part.size(); ++i) {
    if (part[i] == '"') return text;
    if (part[i] == '\\' && ++i == part.size()) break;
    text += part[i];
  }
  return std::nullopt;
}

std::optional<ImapEnd> tagged_end(std::string_view line, std::string_view tag) {
  if (!line.starts_with(tag) || line.substr(tag.size(), 1) != " ") return std::nullopt;
  const auto words = line.substr(tag.size() + 1);
  return ImapEnd{.is_ok = lower_case(words.substr(0, 2)) == "ok", .words = words};
}

bool has_word(std::string_view line, std::string_view word) {
  const auto words = split(line, ' ');
  return std::ranges::any_of(words,
                             [&](std::string_view each) { return lower_case(each) == lower_case(word); });
}

std::string uid_set(const std::vector<std::string>& uids) {
  return joined(uids, ",");
}

}  // namespace mailroom::mailbox
