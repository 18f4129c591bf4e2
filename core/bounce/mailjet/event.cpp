// Reads the events of Mailjet, alone or, if they are grouped, as an array. They have no Message-ID, but the
// custom id that a header has set.

#include <array>
#include <fmt/format.h>

#include "bounce/event_rules.hpp"

namespace mailroom::bounce {

extern const Provider mailjet;

namespace {

/// By the event, with whether a bounce is hard, or with the error of what was not sent or is tried again.
constexpr std::array<EventRule, 18> mailjet_rules{
    {{"bounce hard", EventSort::permanent},
     {"bounce soft", EventSort::transient},
     {"bounce greylisted", EventSort::delayed, BounceReason::rate_limited},
     // It was not sent, as Mailjet or the sender has a reason.
     {"blocked", EventSort::transient, BounceReason::filtered},
     {"blocked user unknown", EventSort::listed},
     {"blocked mailbox inactive", EventSort::transient, BounceReason::suspended},
     {"blocked invalid domain", EventSort::listed},
     {"blocked no mail host", EventSort::listed},
     {"blocked typofix", EventSort::listed},
     {"blocked spam reporter", EventSort::complaint},
     {"blocked sender blocked", EventSort::transient, BounceReason::sender_rejected},
     {"blocked content blocked", EventSort::transient, BounceReason::content},
     {"blocked policy issue", EventSort::transient, BounceReason::policy},
     {"sent", EventSort::delivered},
     {"spam", EventSort::complaint},
     {"unsub", EventSort::unsubscribed},
     {"open", EventSort::nothing},
     {"click", EventSort::nothing}}};

const EventRule* mailjet_rule(const nlohmann::json& event, const std::string& kind) {
  const auto error = text_member(event, "error");
  const auto& hard = member(event, "hard_bounce");
  const bool is_hard = hard.is_boolean() && hard.get<bool>();
  if (kind == "bounce" && is_hard) return find_rule(mailjet_rules, "bounce hard");
  const auto* const exact = error.empty() ? nullptr : find_rule(mailjet_rules, kind + " " + error);
  if (exact != nullptr) return exact;
  return find_rule(mailjet_rules, kind == "bounce" ? "bounce soft" : kind);
}

std::string mailjet_problem(const nlohmann::json& event) {
  const bool has_id = member(event, "MessageID").is_number() || member(event, "mj_message_id").is_string() ||
                      member(event, "Message_GUID").is_string();
  const bool is_event = !text_member(event, "event").empty() && has_id;
  return is_event ? std::string() : "it is no event of Mailjet: it lacks event or MessageID";
}

EventReading read_mailjet(const nlohmann::json& event) {
  const auto kind = text_member(event, "event");
  auto words = text_member(event, "error");
  for (const auto* const key : {"comment", "smtp_reply"}) {
    const auto more = text_member(event, key);
    if (!more.empty()) words += (words.empty() ? "" : ": ") + more;
  }
  EventMail mail{.id = text_member(event, "CustomID"), .at = any_moment(event, "time")};
  const auto message = any_text(event, "MessageID");
  if (!message.empty()) mail.key = fmt::format("{} {}", message, any_text(event, "time"));
  return reading_of(mailjet, mailjet_rule(event, kind), kind,
                    {.original = text_member(event, "email"), .diagnostic = words}, mail);
}

std::string mailjet_header(std::string_view id) {
  return fmt::format("X-MJ-CustomID: {}", id);
}

}  // namespace

const Provider mailjet{.name = "mailjet",
                       .title = "Mailjet",
                       .hosts = {"in-v3.mailjet.com", "in.mailjet.com"},
                       .header = mailjet_header,
                       .problem_of = mailjet_problem,
                       .read = read_mailjet};

}  // namespace mailroom::bounce
