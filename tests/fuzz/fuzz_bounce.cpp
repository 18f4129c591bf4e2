// A mail or an event of any bytes is read as a bounce or as none, within the limits, and what was read is
// sound text.

#include "base/printable.hpp"
#include "bounce/bounce.hpp"
#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz::fuzz_bounce {
namespace {

bool is_one_line(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
}

bool is_hard_reason(bounce::BounceReason reason) {
  return reason == bounce::BounceReason::user_unknown || reason == bounce::BounceReason::host_unknown ||
         reason == bounce::BounceReason::has_moved || reason == bounce::BounceReason::not_accept;
}

void check(const bounce::BounceRecipient& recipient) {
  require(recipient.diagnostic.size() <= bounce::bounce_limits::max_diagnostic, "the words are bounded");
  require(is_utf8(recipient.diagnostic) && is_one_line(recipient.diagnostic),
          "the words are a line of UTF-8");
  require(is_utf8(recipient.remote_mta) && is_one_line(recipient.remote_mta),
          "the server is a line of UTF-8");
  require(is_utf8(recipient.address) && is_one_line(recipient.address), "an address is a line of UTF-8");
  require(recipient.address.find_first_of("<> ") == std::string::npos, "an address has no brackets");
  require(recipient.kind != bounce::BounceKind::hard || is_hard_reason(recipient.reason),
          "few reasons are hard");
  require(recipient.code >= 0 && recipient.code < 600, "a reply code has three digits");
}

int run(const std::uint8_t* data, std::size_t size) {
  const auto bytes = text_of(data, size);
  const auto bounce = bounce::is_event(bytes) ? bounce::read_event(bytes) : bounce::read_bounce(bytes);
  if (!bounce) return 0;
  require(bounce->recipients.size() <= bounce::bounce_limits::max_recipients, "recipients are bounded");
  require(is_utf8(bounce->message_id) && is_one_line(bounce->message_id), "an id is a line of UTF-8");
  require(is_utf8(bounce->envelope_id) && is_one_line(bounce->envelope_id),
          "an envelope id is a line of UTF-8");
  require(is_utf8(bounce->mail.id) && is_one_line(bounce->mail.id), "a provider's id is a line of UTF-8");
  for (const auto& recipient : bounce->recipients)
    check(recipient);
  return 0;
}

const Target target("bounce", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_bounce
