// RFC 5321, section 4.5.3.2, asks a client to wait for minutes at each step. mailroom waits for send.timeout,
// since another attempt follows; only the reply to the end of the message gets more, as an attempt after it
// may be a second delivery (section 4.5.3.2.6).

#include "carriers/smtp/dialogue/steps.hpp"

#include <algorithm>
#include <array>

namespace mailroom::smtp {
namespace {

constexpr auto steps = [] {
  using enum SmtpStep;
  using enum StepLimit;
  return std::array<StepForm, 11>{{
      {connect, "the connection", "", 2, timeout},     // RFC 5321, section 3.1
      {hello, "EHLO", "EHLO", 2, timeout},             // RFC 5321, section 4.1.1.1
      {starttls, "STARTTLS", "STARTTLS", 2, timeout},  // RFC 3207, section 4
      {auth, "AUTH", "AUTH", 2, timeout},              // RFC 4954, section 4: after any number of 334
      {noop, "NOOP", "NOOP", 2, timeout},              // RFC 5321, section 4.1.1.9
      {rset, "RSET", "RSET", 2, timeout},              // RFC 5321, section 4.1.1.5
      {mail, "MAIL", "MAIL", 2, timeout},              // RFC 5321, section 4.1.1.2
      {rcpt, "RCPT", "RCPT", 2, timeout},              // RFC 5321, section 4.1.1.3
      {data, "DATA", "DATA", 354, timeout},            // RFC 5321, section 4.1.1.4
      {body, "a part of the message", "", 2, timeout},
      {end, "the end of the message", "BDAT", 2, end_timeout},  // RFC 3030, section 2: the last chunk
  }};
}();

constexpr bool stand_in_order() {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (static_cast<std::size_t>(steps[i].step) != i) return false;
  }
  return true;
}
static_assert(stand_in_order());

}  // namespace

const StepForm& form_of(SmtpStep step) {
  return steps.at(static_cast<std::size_t>(step));
}

std::optional<SmtpStep> step_of(std::string_view verb) {
  if (verb == "HELO") return SmtpStep::hello;
  const auto* const found = std::ranges::find_if(
      steps, [&](const StepForm& form) { return !form.verb.empty() && form.verb == verb; });
  return found == steps.end() ? std::nullopt : std::optional(found->step);
}

bool goes_on(SmtpStep step, int code) {
  const int awaited = form_of(step).awaited;
  return (awaited < 10 ? code / 100 : code) == awaited;
}

}  // namespace mailroom::smtp
