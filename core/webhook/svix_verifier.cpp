// The signature is that of Standard Webhooks, with other names of headers.

#include "webhook/svix_verifier.hpp"

#include "base/text.hpp"

namespace mailroom::webhook {

std::string SvixVerifier::problem_of(const process::HttpCall& call, std::int64_t now) {
  const std::lock_guard lock(mutex_);
  if (!secrets_.signs()) return "bounce.resend_secret_files names no secret of a webhook of Resend";
  const auto id = call.header("svix-id");
  const auto signature = call.header("svix-signature");
  const auto timestamp = parse_number<std::int64_t>(call.header("svix-timestamp"));
  if (id.empty() || signature.empty() || !timestamp || *timestamp < 0)
    return "a header of the signature is missing or malformed";
  if (!secrets_.has_signed(signature, id, *timestamp, call.body))
    return "no secret in bounce.resend_secret_files has signed it";
  if (*timestamp < now - window.count()) return "it was signed more than 5 minutes ago";
  if (*timestamp > now + window.count()) return "it was signed more than 5 minutes in the future";
  return {};
}

}  // namespace mailroom::webhook
