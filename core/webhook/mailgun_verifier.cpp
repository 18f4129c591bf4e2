// Whoever saw one request could post any event with its signature, but for the tokens that are kept.

#include "webhook/mailgun_verifier.hpp"

#include <cstdlib>
#include <span>

#include "base/encoded_text.hpp"
#include "base/text.hpp"
#include "bounce/event_rules.hpp"
#include "crypto/digest.hpp"

namespace mailroom::webhook {
namespace {

constexpr auto mailgun_key = "bounce.mailgun_secret_files";

std::span<const std::uint8_t> key_bytes(std::string_view text) {
  return {static_cast<const std::uint8_t*>(static_cast<const void*>(text.data())), text.size()};
}

/// The bytes of hexadecimal digits are compared as text: both are in lower case.
crypto::Digest digest_of_text(std::string_view text) {
  return crypto::sha256({lower_case(text)});
}

}  // namespace

bool has_mailgun_signature(std::string_view body) {
  return bounce::member(bounce::member(try_parse_json(body), "signature"), "token").is_string();
}

MailgunVerifier::MailgunVerifier(const std::vector<std::string>& keys) {
  for (const auto& key : keys)
    keys_.emplace_back(key_bytes(key));
}

std::string MailgunVerifier::problem_of(std::string_view body, std::int64_t now) {
  constexpr std::size_t longest_token = 200;
  const auto posted = try_parse_json(body);
  const auto& signature = bounce::member(posted, "signature");
  const auto text = bounce::any_text(signature, "timestamp");
  const auto token = bounce::text_member(signature, "token");
  const auto timestamp = parse_number<std::int64_t>(text);
  if (!timestamp || *timestamp < 0 || token.empty() || token.size() > longest_token)
    return "a member of the signature is missing or malformed";
  const auto event = crypto::sha256({plain_json(bounce::member(posted, "event-data"))});
  const std::lock_guard lock(mutex_);
  if (keys_.empty()) return std::string(mailgun_key) + " names no signing key of Mailgun";
  if (!has_signed(text, token, signature)) return "no key in " + std::string(mailgun_key) + " has signed it";
  return use(token, event, *timestamp, now);
}

bool MailgunVerifier::has_signed(std::string_view timestamp, std::string_view token,
                                 const nlohmann::json& signature) {
  bool has_signed = false;
  for (auto& key : keys_) {
    const auto own = digest_of_text(hex_text(key.digest({timestamp, token})));
    // That of a subaccount's event is also made with the key of its parent.
    for (const auto* const name : {"signature", "parent-signature"}) {
      const auto given = digest_of_text(bounce::text_member(signature, name));
      has_signed = crypto::equal_in_constant_time(own, given) || has_signed;
    }
  }
  return has_signed;
}

std::string MailgunVerifier::use(const std::string& token, const crypto::Digest& event,
                                 std::int64_t timestamp, std::int64_t now) {
  forget_old(now);
  if (const auto found = uses_.find(token); found != uses_.end())
    return found->second.event == event ? std::string() : "its token came with another event";
  constexpr auto longest = std::chrono::seconds(window).count();
  if (timestamp < now - longest) return "it was signed more than 20 minutes ago";
  if (timestamp > now + longest) return "it was signed more than 20 minutes in the future";
  uses_[token] = {event, now};
  order_.push_back(token);
  return {};
}

void MailgunVerifier::forget_old(std::int64_t now) {
  constexpr auto longest = std::chrono::seconds(memory).count();
  while (!order_.empty() && (order_.size() >= most_kept || uses_[order_.front()].at < now - longest)) {
    uses_.erase(order_.front());
    order_.pop_front();
  }
}

}  // namespace mailroom::webhook
