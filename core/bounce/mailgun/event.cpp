// Reads the events of Mailgun, each posted alone beside its signature. It keeps the Message-ID, and its
// events have the variables that a header has set.

#include <array>
#include <fmt/format.h>

#include "bounce/event_rules.hpp"

namespace mailroom::bounce {

extern const Provider mailgun;

namespace {

/// By the event, with the severity of one that failed, or with the reason if that says more.
constexpr std::array<EventRule, 18> mailgun_rules{
    {{"failed permanent", EventSort::permanent},
     {"failed temporary", EventSort::delayed},
     {"failed suppress-bounce", EventSort::listed},
     {"failed suppress-complaint", EventSort::complaint},
     {"failed suppress-unsubscribe", EventSort::unsubscribed},
     {"failed old", EventSort::transient, BounceReason::expired},
     {"failed espblock", EventSort::transient, BounceReason::blocked},
     {"rejected", EventSort::transient, BounceReason::policy},
     {"delivered", EventSort::delivered},
     {"complained", EventSort::complaint},
     {"unsubscribed", EventSort::unsubscribed},
     {"accepted", EventSort::nothing},
     {"opened", EventSort::nothing},
     {"clicked", EventSort::nothing},
     {"stored", EventSort::nothing},
     {"list_member_uploaded", EventSort::nothing},
     {"list_member_upload_error", EventSort::nothing},
     {"list_uploaded", EventSort::nothing}}};

std::string mailgun_kind(const nlohmann::json& data) {
  auto kind = text_member(data, "event");
  if (kind != "failed") return kind;
  const auto severity = text_member(data, "severity");
  const auto by_reason = "failed " + text_member(data, "reason");
  const bool says_more = severity != "temporary" && find_rule(mailgun_rules, by_reason) != nullptr;
  return says_more ? by_reason : "failed " + severity;
}

std::string mailgun_problem(const nlohmann::json& event) {
  return member(event, "event-data").is_object() ? std::string()
                                                 : "it is no event of Mailgun: it has no event-data";
}

/// Codes above 599 are Mailgun's own, and 498 and 499 too.
std::string mailgun_words(const nlohmann::json& data) {
  const auto& status = member(data, "delivery-status");
  auto words = text_member(status, "message");
  if (words.empty()) words = text_member(status, "description");
  if (words.empty()) words = text_member(member(data, "reject"), "reason");
  const auto code = any_text(status, "code");
  const bool is_reply = code.size() == 3 && code < "600" && code > "399" && code != "498" && code != "499";
  return is_reply ? reply_of(code, words) : words;
}

EventReading read_mailgun(const nlohmann::json& event) {
  const auto& data = member(event, "event-data");
  const auto& headers = member(member(data, "message"), "headers");
  const auto& status = member(data, "delivery-status");
  auto address = text_member(data, "recipient");
  if (address.empty()) address = text_member(headers, "to");
  const auto kind = mailgun_kind(data);
  EventMail mail{.id = id_of_object(member(data, "user-variables")),
                 .message_id = text_member(headers, "message-id"),
                 .at = any_moment(data, "timestamp")};
  // It is unique within a day.
  if (const auto id = text_member(data, "id"); !id.empty())
    mail.key = fmt::format("{} {}", id, mail.message_id);
  return reading_of(mailgun, find_rule(mailgun_rules, kind), kind,
                    {.original = address,
                     .status = text_member(status, "enhanced-code"),
                     .diagnostic = mailgun_words(data),
                     .remote_mta = text_member(status, "mx-host")},
                    mail);
}

std::string mailgun_header(std::string_view id) {
  return "X-Mailgun-Variables: " + id_object(id);
}

}  // namespace

const Provider mailgun{.name = "mailgun",
                       .title = "Mailgun",
                       .hosts = {"smtp.mailgun.org", "smtp.eu.mailgun.org"},
                       .header = mailgun_header,
                       .problem_of = mailgun_problem,
                       .read = read_mailgun};

}  // namespace mailroom::bounce
