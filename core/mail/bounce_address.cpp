// The id is the token's number and a part of an HMAC over it and the name of its database, in base32 (RFC
// 4648) and lower case: local parts may lose their case on the way.

#include "mail/bounce_address.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <mutex>
#include <utility>

#include "base/text.hpp"
#include "crypto/hmac.hpp"

namespace mailroom::mail {
namespace {

constexpr std::string_view placeholder = "{id}";
constexpr std::size_t most_octets = 64;          // RFC 5321, section 4.5.3.1.1
constexpr std::size_t longest_id = 19 + 1 + 10;  // of the highest token

std::string bounce_tag(std::int64_t token, std::string_view home, crypto::Hmac& hmac) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz234567";
  constexpr int tag_letters = 10;
  const auto digest = hmac.digest({"mailroom bounce ", std::to_string(token), " ", home});
  std::string tag;
  for (std::size_t bit = 0; bit < tag_letters * 5; bit += 5) {
    const auto pair = static_cast<unsigned>(digest[bit / 8] << 8U | digest[bit / 8 + 1]);
    tag += letters[pair >> (11 - bit % 8) & 31U];
  }
  return tag;
}

}  // namespace

std::optional<std::int64_t> token_of_bounce_id(std::string_view id, std::string_view home,
                                               const crypto::KeyRing& keys) {
  const auto dash = id.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto token = parse_number<std::int64_t>(id.substr(0, dash));
  if (!token || *token < 1) return std::nullopt;
  const auto tag = lower_case(id.substr(dash + 1));
  const auto has_made_it = [&](const crypto::Key& key) {
    crypto::Hmac hmac(key);
    return bounce_tag(*token, home, hmac) == tag;
  };
  const bool is_ours = has_made_it(keys.current) || std::ranges::any_of(keys.previous, has_made_it);
  return is_ours ? token : std::nullopt;
}

std::optional<Refusal> BounceAddress::problem_of(std::string_view pattern) {
  const auto at = pattern.find(placeholder);
  const auto end = pattern.rfind('@');
  if (at == std::string_view::npos || end == std::string_view::npos || at > end ||
      pattern.find(placeholder, at + 1) != std::string_view::npos)
    return Refusal{"it is no address with {id} before the @, such as bounce+{id}@app.example"};
  if (end - placeholder.size() + longest_id > most_octets)
    return Refusal{
        fmt::format("with an id its part before the @ would have more than {} octets", most_octets)};
  std::string example(pattern);
  example.replace(at, placeholder.size(), "1-a");
  const auto address = parse_address(example);
  if (const auto* refusal = std::get_if<Refusal>(&address)) return *refusal;
  return std::get<Address>(address).text() == example
             ? std::nullopt
             : std::optional(Refusal{"its domain is not in ASCII: write it with xn--"});
}

/// One for all mails: to set up an HMAC costs as much as a hundred lines of a mail.
struct BounceAddress::Signer {
  explicit Signer(const crypto::Key& key) : hmac(key) {}

  std::mutex mutex{};
  crypto::Hmac hmac;
};

BounceAddress::BounceAddress(std::string pattern, const crypto::Key& key)
    : pattern_(std::move(pattern)), signer_(std::make_shared<Signer>(key)) {}

std::string BounceAddress::id_of(std::int64_t token, std::string_view home) const {
  const std::lock_guard lock(signer_->mutex);
  return fmt::format("{}-{}", token, bounce_tag(token, home, signer_->hmac));
}

std::string BounceAddress::address_with(std::string_view id) const {
  auto address = pattern_;
  return address.replace(address.find(placeholder), placeholder.size(), id);
}

std::string bounce_id_in(std::string_view address, std::string_view pattern) {
  const auto at = pattern.find(placeholder);
  if (at == std::string_view::npos) return {};
  const auto begin = lower_case(pattern.substr(0, at));
  const auto end = lower_case(pattern.substr(at + placeholder.size()));
  const auto text = lower_case(address);
  if (text.size() <= begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end)) return {};
  return text.substr(begin.size(), text.size() - begin.size() - end.size());
}

}  // namespace mailroom::mail
