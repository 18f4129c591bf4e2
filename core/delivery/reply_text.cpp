// Masks secrets, cuts between characters, and reads times such as `try again in 5 min`.

#include "delivery/reply_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "crypto/base64.hpp"

namespace mailroom::delivery {
namespace {

constexpr std::size_t kept_text = 2000;
constexpr std::size_t recorded_text = 200;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void mask_all(std::string& text, const std::string& secret) {
  constexpr std::string_view mask = "***";
  if (secret.empty()) return;
  for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + mask.size())) {
    text.replace(at, secret.size(), mask);
  }
}

/// The base64 of `text` without padding.
std::string unpadded_base64(std::string_view text) {
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  std::string encoded(crypto::base64url_length(bytes.size()), '\0');
  crypto::encode_base64url(bytes, encoded);
  std::replace(encoded.begin(), encoded.end(), '-', '+');
  std::replace(encoded.begin(), encoded.end(), '_', '/');
  return encoded;
}

/// The seconds of a unit at the front of `text`: `s`, `sec`, `seconds`, `min`, `h`, and so on; 0 for another
/// word.
std::int64_t unit_seconds(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 12> units{{{"s", 1},
                                                                             {"sec", 1},
                                                                             {"secs", 1},
                                                                             {"second", 1},
                                                                             {"seconds", 1},
                                                                             {"m", 60},
                                                                             {"min", 60},
                                                                             {"mins", 60},
                                                                             {"minute", 60},
                                                                             {"minutes", 60},
                                                                             {"hour", 3600},
                                                                             {"hours", 3600}}};
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto* const end =
      std::find_if_not(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  const auto word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  const auto* const unit =
      std::find_if(units.begin(), units.end(), [&](const auto& known) { return known.first == word; });
  return unit == units.end() ? 0 : unit->second;
}

}  // namespace

bool has_reply_code(std::string_view line) {
  return line.size() >= 3 && std::all_of(line.begin(), line.begin() + 3, is_digit);
}

std::string no_smtp_text(std::string_view greeting) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> greetings{
      {{"* OK", "IMAP"},
       {"* PREAUTH", "IMAP"},
       {"* BYE", "IMAP"},
       {"+OK", "POP3"},
       {"-ERR", "POP3"},
       {"HTTP/", "HTTP"},
       {"SSH-", "SSH"},
       {"\"IMPLEMENTATION\"", "ManageSieve"}}};
  for (const auto& [start, protocol] : greetings) {
    if (greeting.starts_with(start))
      return fmt::format("no SMTP server, but one of {}: {}", protocol, greeting);
  }
  return fmt::format("no SMTP server: {}", greeting);
}

bool ReplyReader::add(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r'))
    line.remove_suffix(1);
  int code = 0;
  const bool has_code = has_reply_code(line);
  if (has_code) std::from_chars(line.data(), line.data() + 3, code);
  const bool is_last = has_code && (line.size() == 3 || line[3] == ' ' || line[3] == '\t');
  const auto words = line.substr(has_code ? std::min<std::size_t>(line.size(), 4) : 0, kept_text);
  if (text_.size() < kept_text) text_.append(text_.empty() ? "" : " ").append(words);
  last_line_ = words;
  if (is_last) code_ = code;
  return is_last;
}

void ReplyReader::clear() {
  code_ = 0;
  text_.clear();
  last_line_.clear();
}

std::string recorded_reply(std::string_view text, const std::vector<std::string>& secrets) {
  std::string masked(text);
  for (const auto& secret : secrets)
    mask_all(masked, secret);
  auto shown = printable(masked);
  if (shown.size() <= recorded_text) return shown;
  auto end = recorded_text;
  while (is_continuation(shown[end]))
    --end;
  shown.resize(end);
  return shown;
}

std::string without_addresses(std::string_view text) {
  constexpr std::string_view around = " \t<>()[],;:\"'`";
  std::string masked;
  for (auto at = text.find('@'); at != std::string_view::npos; at = text.find('@')) {
    const auto before = text.find_last_of(around, at);
    auto start = before == std::string_view::npos ? 0 : before + 1;
    // "a b"@c.example
    if (start == at && at > 1 && text[at - 1] == '"') start = std::min(text.rfind('"', at - 2), at - 1);
    // @[192.0.2.1]
    const bool is_literal = text.substr(at + 1).starts_with('[');
    const auto after = is_literal ? text.find(']', at) : text.find_first_of(around, at + 1);
    auto end = std::min(after, text.size());
    if (is_literal && end < text.size()) ++end;
    while (end > at + 1 && text[end - 1] == '.')
      --end;
    masked.append(text.substr(0, start)).append(end - start > 1 ? "***@***" : "@");
    text.remove_prefix(end);
  }
  return masked.append(text);
}

std::vector<std::string> secrets_of_login(const std::string& user, const std::string& password) {
  if (password.empty()) return {};
  using namespace std::string_literals;
  return {unpadded_base64("\0"s + user + "\0"s + password), unpadded_base64(password), password};
}

std::optional<std::chrono::seconds> named_delay(std::string_view text) {
  constexpr std::int64_t longest = 86'400;
  const auto lower = lower_case(text);
  const auto mentions = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  if (!mentions("try") && !mentions("again") && !mentions("wait") && !mentions("listed")) return std::nullopt;
  for (const std::string_view before : {"in ", "after ", "for ", "wait "}) {
    for (auto at = lower.find(before); at != std::string::npos; at = lower.find(before, at + 1)) {
      const auto rest = std::string_view(lower).substr(at + before.size());
      std::int64_t count = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
      if (error != std::errc{} || count <= 0 || count > longest) continue;
      const auto seconds = count * unit_seconds(rest.substr(static_cast<std::size_t>(end - rest.data())));
      if (seconds > 0 && seconds <= longest) return std::chrono::seconds(seconds);
    }
  }
  return std::nullopt;
}

}  // namespace mailroom::delivery
