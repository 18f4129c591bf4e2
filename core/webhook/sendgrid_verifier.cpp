// The key is public: whoever reads it can check, and not sign.

#include "webhook/sendgrid_verifier.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "crypto/base64.hpp"
#include "crypto/certificate.hpp"

namespace mailroom::webhook {
namespace {

/// The base64 of a key without what PEM has around it.
std::string key_letters(std::string_view text) {
  std::string letters;
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with("-----")) letters += line;
  }
  std::erase_if(letters, [](unsigned char c) { return std::isspace(c) != 0; });
  return letters;
}

}  // namespace

SendGridVerifier::SendGridVerifier(const std::vector<std::string>& keys, const std::string& named_by) {
  for (const auto& key : keys) {
    auto der = crypto::decoded_base64(key_letters(key));
    if (!der || !crypto::is_p256_key(*der))
      throw Error(ExitCode::configuration,
                  fmt::format("a key of {} is no public key of ECDSA over P-256", named_by),
                  "copy the verification key that SendGrid shows for the signed event webhook");
    keys_.push_back(std::move(*der));
  }
}

std::string SendGridVerifier::problem_of(const process::HttpCall& call, std::int64_t now) const {
  if (keys_.empty()) return "bounce.sendgrid_key_files names no verification key of SendGrid";
  const auto time = call.header("x-twilio-email-event-webhook-timestamp");
  const auto timestamp = parse_number<std::int64_t>(time);
  const auto signature = crypto::decoded_base64(call.header(signature_header));
  if (!timestamp || *timestamp < 0 || !signature) return "a header of the signature is missing or malformed";
  const auto text = std::string(time) + call.body;
  const bool is_signed = std::ranges::any_of(
      keys_, [&](const auto& key) { return crypto::is_signed_by_p256_key(key, text, *signature); });
  if (!is_signed) return "no key in bounce.sendgrid_key_files has signed it";
  constexpr auto longest = std::chrono::seconds(window).count();
  if (*timestamp < now - longest) return "it was signed more than 20 minutes ago";
  if (*timestamp > now + longest) return "it was signed more than 20 minutes in the future";
  return {};
}

}  // namespace mailroom::webhook
