// The bits of the HMAC come first, and are the seed of a pad that the number is hidden by: so equal numbers
// make equal texts, and no two texts tell which number is the higher one.

#include "mail/subscription_link.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>

#include "base/text.hpp"
#include "crypto/base64.hpp"
#include "crypto/hmac.hpp"
#include "mail/link_template.hpp"

namespace mailroom::mail {
namespace {

constexpr std::string_view token_placeholder = "{token}";
constexpr std::size_t tag_size = 16;
constexpr std::size_t number_size = 8;
constexpr std::size_t sealed_size = tag_size + number_size;
constexpr std::size_t text_size = 1 + crypto::base64url_length(sealed_size);

using Tag = std::array<std::uint8_t, tag_size>;
using Sealed = std::array<std::uint8_t, sealed_size>;

Tag tag_of(std::int64_t token, std::string_view home, crypto::Hmac& hmac) {
  const auto digest = hmac.digest({"mailroom subscription ", std::to_string(token), " ", home});
  Tag tag{};
  std::copy_n(digest.begin(), tag_size, tag.begin());
  return tag;
}

/// Hides a number, and shows a hidden one.
std::uint64_t padded(std::uint64_t number, const Tag& tag, crypto::Hmac& hmac) {
  const std::string seed(tag.begin(), tag.end());
  const auto pad = hmac.digest({"mailroom subscription pad ", seed});
  for (std::size_t i = 0; i < number_size; ++i)
    number ^= static_cast<std::uint64_t>(pad[i]) << (8 * i);
  return number;
}

bool are_equal(const Tag& a, const Tag& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < tag_size; ++i)
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::optional<std::int64_t> opened(const Sealed& sealed, std::string_view home, const crypto::Key& key) {
  crypto::Hmac hmac(key);
  Tag tag{};
  std::copy_n(sealed.begin(), tag_size, tag.begin());
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < number_size; ++i)
    number |= static_cast<std::uint64_t>(sealed[tag_size + i]) << (8 * i);
  const auto token = static_cast<std::int64_t>(padded(number, tag, hmac));
  const bool is_ours = token > 0 && are_equal(tag_of(token, home, hmac), tag);
  return is_ours ? std::optional(token) : std::nullopt;
}

char letter_of(SubscriptionUse use) {
  return use == SubscriptionUse::unsubscribe ? 'u' : 'p';
}

/// True for the host of a URL that leads to this machine.
bool is_own_host(std::string_view url) {
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"127.0.0.1", "localhost", "[::1]"}, [&](auto host) {
        return url.starts_with(host) &&
               (url.size() == host.size() || url[host.size()] == ':' || url[host.size()] == '/');
      });
}

}  // namespace

std::string subscription_text(const SubscriptionLink& link, std::string_view home, const crypto::Key& key) {
  crypto::Hmac hmac(key);
  const auto tag = tag_of(link.token, home, hmac);
  const auto number = padded(static_cast<std::uint64_t>(link.token), tag, hmac);
  Sealed sealed{};
  std::ranges::copy(tag, sealed.begin());
  for (std::size_t i = 0; i < number_size; ++i)
    sealed[tag_size + i] = static_cast<std::uint8_t>(number >> (8 * i));
  std::string text(text_size, letter_of(link.use));
  crypto::encode_base64url(sealed, std::span(text).subspan(1));
  return text;
}

bool is_subscription_text(std::string_view text) {
  Sealed sealed{};
  return text.size() == text_size && (text.front() == 'u' || text.front() == 'p') &&
         crypto::decode_base64url(text.substr(1), sealed);
}

std::optional<SubscriptionLink> read_subscription_text(std::string_view text, std::string_view home,
                                                       const crypto::KeyRing& keys) {
  if (!is_subscription_text(text)) return std::nullopt;
  Sealed sealed{};
  crypto::decode_base64url(text.substr(1), sealed);
  auto token = opened(sealed, home, keys.current);
  for (auto key = keys.previous.begin(); !token && key != keys.previous.end(); ++key)
    token = opened(sealed, home, *key);
  if (!token) return std::nullopt;
  return SubscriptionLink{
      .use = text.front() == 'u' ? SubscriptionUse::unsubscribe : SubscriptionUse::preferences,
      .token = *token};
}

std::optional<Refusal> SubscriptionLinks::problem_of(std::string_view pattern) {
  const auto parsed = LinkTemplate::parse(pattern);
  if (const auto* refusal = std::get_if<Refusal>(&parsed)) return *refusal;
  const auto place = pattern.find(token_placeholder);
  const bool is_last =
      place + token_placeholder.size() == pattern.size() && place > 0 && pattern[place - 1] == '/';
  if (!is_last || pattern.find('{') != place || pattern.find_first_of("?#") != std::string_view::npos)
    return Refusal{"does not end with /{token}, and has it nowhere else"};
  const auto scheme = lower_case(pattern.substr(0, pattern.find("://")));
  if (scheme == "https" || is_own_host(pattern.substr(pattern.find("://") + 3))) return std::nullopt;
  return Refusal{"is not https, without which receivers unsubscribe nobody (RFC 8058)"};
}

std::string SubscriptionLinks::link(const SubscriptionLink& link, std::string_view home) const {
  return pattern_.substr(0, pattern_.size() - token_placeholder.size()) + subscription_text(link, home, key_);
}

std::vector<ExtraHeader> SubscriptionLinks::headers(std::int64_t token, std::string_view home) const {
  std::string ways;
  if (has_link()) ways = fmt::format("<{}>", link({.token = token}, home));
  if (mailto_.has_pattern()) {
    const auto address = mailto_.address_with(mailto_.id_of(token, home));
    ways += fmt::format("{}<mailto:{}?subject=unsubscribe>", ways.empty() ? "" : ", ", address);
  }
  std::vector<ExtraHeader> headers{{.name = "List-Unsubscribe", .value = std::move(ways)}};
  if (has_link()) headers.push_back({.name = "List-Unsubscribe-Post", .value = "List-Unsubscribe=One-Click"});
  return headers;
}

}  // namespace mailroom::mail
