// Reads the events of SendGrid, posted as an array. It keeps the Message-ID as smtp-id, and its events have
// the unique arguments that a header has set, among their own members.

#include <array>
#include <fmt/format.h>

#include "base/text.hpp"
#include "bounce/event_rules.hpp"

namespace mailroom::bounce {

extern const Provider sendgrid;

namespace {

/// By the event, with the type of a bounce and the reason of what was dropped.
constexpr std::array<EventRule, 21> sendgrid_rules{
    {{"bounce", EventSort::permanent},
     {"bounce blocked", EventSort::transient, BounceReason::blocked},
     {"bounce expired", EventSort::transient, BounceReason::expired},
     {"dropped", EventSort::transient, BounceReason::system},
     {"dropped bounced address", EventSort::listed},
     {"dropped invalid", EventSort::listed},
     {"dropped unsubscribed address", EventSort::unsubscribed},
     {"dropped spam reporting address", EventSort::complaint},
     {"dropped spam content", EventSort::transient, BounceReason::spam},
     {"deferred", EventSort::delayed},
     {"delivered", EventSort::delivered},
     {"spamreport", EventSort::complaint},
     {"unsubscribe", EventSort::unsubscribed},
     // Of one kind of mails, which SendGrid drops then.
     {"group_unsubscribe", EventSort::nothing},
     {"group_resubscribe", EventSort::nothing},
     {"resubscribe", EventSort::nothing},
     {"processed", EventSort::nothing},
     {"open", EventSort::nothing},
     {"click", EventSort::nothing},
     {"account_status_change", EventSort::nothing},
     {"compliance_suspend", EventSort::nothing}}};

const EventRule* sendgrid_rule(const nlohmann::json& event, const std::string& kind) {
  const auto detail = kind == "bounce"    ? text_member(event, "type")
                      : kind == "dropped" ? lower_case(text_member(event, "reason"))
                                          : std::string();
  const auto* const exact = detail.empty() ? nullptr : find_rule(sendgrid_rules, kind + " " + detail);
  return exact == nullptr ? find_rule(sendgrid_rules, kind) : exact;
}

std::string sendgrid_problem(const nlohmann::json& event) {
  const bool has_id =
      !text_member(event, "sg_event_id").empty() || !text_member(event, "sg_message_id").empty();
  const bool is_event = !text_member(event, "event").empty() && has_id;
  return is_event ? std::string() : "it is no event of SendGrid: it lacks event or sg_event_id";
}

EventReading read_sendgrid(const nlohmann::json& event) {
  const auto kind = text_member(event, "event");
  auto words = text_member(event, "reason");
  if (words.empty()) words = text_member(event, "response");
  return reading_of(
      sendgrid, sendgrid_rule(event, kind), kind,
      {.original = text_member(event, "email"), .status = text_member(event, "status"), .diagnostic = words},
      {.id = text_member(event, "mailroom"),
       .message_id = text_member(event, "smtp-id"),
       .at = any_moment(event, "timestamp"),
       .key = text_member(event, "sg_event_id")});
}

std::string sendgrid_header(std::string_view id) {
  return fmt::format(R"(X-SMTPAPI: {{"unique_args":{}}})", id_object(id));
}

}  // namespace

const Provider sendgrid{.name = "sendgrid",
                        .title = "SendGrid",
                        .hosts = {"smtp.sendgrid.net", "smtp.eu.sendgrid.net"},
                        .header = sendgrid_header,
                        .problem_of = sendgrid_problem,
                        .read = read_sendgrid};

}  // namespace mailroom::bounce
