// RFC 5321, section 4.1.1; verbs and keys in any case.

#include "submission/command.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"

namespace mailroom::submission {
namespace {

constexpr std::array<std::pair<std::string_view, Verb>, 19> verbs{{{"ehlo", Verb::ehlo},
                                                                   {"helo", Verb::helo},
                                                                   {"data", Verb::data},
                                                                   {"bdat", Verb::bdat},
                                                                   {"rset", Verb::rset},
                                                                   {"noop", Verb::noop},
                                                                   {"quit", Verb::quit},
                                                                   {"auth", Verb::auth},
                                                                   {"starttls", Verb::starttls},
                                                                   {"vrfy", Verb::vrfy},
                                                                   {"help", Verb::help},
                                                                   {"get", Verb::web},
                                                                   {"post", Verb::web},
                                                                   {"put", Verb::web},
                                                                   {"head", Verb::web},
                                                                   {"options", Verb::web},
                                                                   {"connect", Verb::web},
                                                                   {"delete", Verb::web},
                                                                   {"patch", Verb::web}}};

/// The place behind the path that begins `text`; npos if it has no end.
std::size_t end_of_path(std::string_view text) {
  if (!text.starts_with('<')) return std::min(text.find(' '), text.size());
  bool is_quoted = false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\' && is_quoted) {
      ++i;
    } else if (text[i] == '"') {
      is_quoted = !is_quoted;
    } else if (text[i] == '>' && !is_quoted) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::string_view without_route(std::string_view address) {
  if (!address.starts_with('@')) return address;
  const auto colon = address.find(':');
  return colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
}

}  // namespace

Command parse_command(std::string_view line) {
  for (const auto& [name, verb] : {std::pair{"mail from:", Verb::mail}, std::pair{"rcpt to:", Verb::rcpt}}) {
    const std::string_view begin = name;
    if (lower_case(line.substr(0, begin.size())) == begin) return {verb, line.substr(begin.size())};
  }
  const auto word = line.substr(0, line.find(' '));
  const auto rest = line.substr(std::min(word.size() + 1, line.size()));
  const auto found = std::ranges::find(verbs, lower_case(word), [](const auto& each) { return each.first; });
  return {found == verbs.end() ? Verb::unknown : found->second, rest};
}

std::optional<PathArgument> parse_path(std::string_view rest) {
  rest = trimmed(rest);
  if (rest.empty()) return std::nullopt;
  const auto end = end_of_path(rest);
  if (end == std::string_view::npos || (end < rest.size() && rest[end] != ' ')) return std::nullopt;
  auto path = rest.substr(0, end);
  if (path.starts_with('<')) path = path.substr(1, path.size() - 2);
  PathArgument argument{.address = std::string(without_route(path))};
  if (argument.address.empty() && path.starts_with('@')) return std::nullopt;
  for (rest.remove_prefix(end); !trimmed(rest).empty();) {
    rest = trimmed(rest);
    const auto word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
    const auto equals = std::min(word.find('='), word.size());
    auto key = std::string(word.substr(0, equals));
    std::ranges::transform(key, key.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    argument.parameters.push_back(
        {std::move(key), std::string(word.substr(std::min(equals + 1, word.size())))});
  }
  return argument;
}

bool is_local_address(std::string_view address) {
  const auto at = address.rfind('@');
  return at == std::string_view::npos ||
         (at + 1 < address.size() && address.find('.', at) == std::string_view::npos);
}

std::optional<ChunkSize> parse_chunk_size(std::string_view rest) {
  rest = trimmed(rest);
  const auto digits = rest.substr(0, rest.find(' '));
  const auto more = lower_case(trimmed(rest.substr(digits.size())));
  const auto size = parse_number<unsigned long long>(digits);
  if (!size || digits.starts_with('+') || digits.starts_with('-') || (!more.empty() && more != "last"))
    return std::nullopt;
  return ChunkSize{*size, !more.empty()};
}

}  // namespace mailroom::submission
