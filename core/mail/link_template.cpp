// Checks the URL of send.link and its placeholders, and percent-encodes what is put into them.

#include "mail/link_template.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/encoded_text.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"

namespace mailroom::mail {
namespace {

constexpr std::size_t longest_template = 1000;

/// RFC 3986, appendix A, and the braces of the placeholders.
bool may_be_in_url(char c) {
  const bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_word || std::string_view("-._~:/?#[]@!$&'()*+,;=%{}").find(c) != std::string_view::npos;
}

/// The size of `http://` or `https://` at the front of `text`; 0 for any other scheme. Case does not matter
/// there.
std::size_t scheme_size(std::string_view text) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    const auto is_same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
    if (text.size() >= scheme.size() &&
        std::equal(scheme.begin(), scheme.end(), text.begin(), [&](char b, char a) { return is_same(a, b); }))
      return scheme.size();
  }
  return 0;
}

/// Empty if `text` is a URL apart from its placeholders.
std::string problem_of_url(std::string_view text) {
  if (text.size() > longest_template)
    return fmt::format("has {} characters, at most {} are allowed", text.size(), longest_template);
  const auto foreign = std::find_if_not(text.begin(), text.end(), may_be_in_url);
  if (foreign != text.end())
    return "has a character that a URL must not have; percent-encode it, and write an international host in ASCII";
  const auto scheme = scheme_size(text);
  if (scheme == 0) return "does not begin with https:// or http://";
  const auto host = text.substr(scheme, text.find_first_of("/?#", scheme) - scheme);
  if (host.empty()) return "names no host";
  if (host.find_first_of("{}") != std::string_view::npos) return "has a placeholder in its host";
  return {};
}

Refusal unknown_placeholder(std::string_view name) {
  const auto meant = nearest_word(name, {"action", "token"});
  return Refusal{fmt::format(
      "has an unknown placeholder {{{}}}; {}", name,
      meant.empty() ? "known are {action} and {token}" : fmt::format("did you mean {{{}}}?", meant))};
}

}  // namespace

std::variant<std::vector<LinkTemplate::Piece>, Refusal> LinkTemplate::split(std::string_view text) {
  std::vector<Piece> pieces;
  while (true) {
    const auto brace = text.find_first_of("{}");
    if (brace == std::string_view::npos) {
      pieces.emplace_back(text, Value::none);
      return pieces;
    }
    const auto end = text.find('}', brace);
    if (text[brace] == '}' || end == std::string_view::npos)
      return Refusal{fmt::format("has an unmatched {}", text[brace])};
    const auto name = text.substr(brace + 1, end - brace - 1);
    if (name != "action" && name != "token") return unknown_placeholder(name);
    pieces.emplace_back(text.substr(0, brace), name == "token" ? Value::token : Value::action);
    text.remove_prefix(end + 1);
  }
}

std::variant<LinkTemplate, Refusal> LinkTemplate::parse(std::string_view text) {
  if (auto problem = problem_of_url(text); !problem.empty()) return Refusal{std::move(problem)};
  auto pieces = split(text);
  if (auto* refusal = std::get_if<Refusal>(&pieces)) return std::move(*refusal);
  auto& found = std::get<std::vector<Piece>>(pieces);
  const bool has_token =
      std::any_of(found.begin(), found.end(), [](const auto& piece) { return piece.second == Value::token; });
  if (!has_token) return Refusal{"has no {token}, without which every mail has the same link"};
  return LinkTemplate(std::move(found));
}

std::string LinkTemplate::link(std::string_view action, std::string_view token) const {
  std::string link;
  for (const auto& [literal, value] : pieces_) {
    link += literal;
    if (value == Value::action) link += percent_encoded(action);
    if (value == Value::token) link += percent_encoded(token);
  }
  return link;
}

}  // namespace mailroom::mail
