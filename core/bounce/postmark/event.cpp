// Reads the events of Postmark, each posted alone. It gives a mail a Message-ID of its own, and its events
// have the metadata that headers have set.

#include <array>
#include <fmt/format.h>

#include "bounce/event_rules.hpp"

namespace mailroom::bounce {

extern const Provider postmark;

namespace {

/// By `Type` of a bounce or complaint, and by RecordType of the others.
constexpr std::array<EventRule, 32> postmark_rules{
    {{"HardBounce", EventSort::permanent},
     {"BadEmailAddress", EventSort::permanent},
     {"SoftBounce", EventSort::transient},
     {"Transient", EventSort::delayed},
     {"DnsError", EventSort::delayed, BounceReason::network},
     {"Unknown", EventSort::undetermined},
     {"SpamNotification", EventSort::transient, BounceReason::spam},
     {"VirusNotification", EventSort::transient, BounceReason::virus},
     {"Blocked", EventSort::transient, BounceReason::blocked},
     {"DMARCPolicy", EventSort::transient, BounceReason::authentication},
     {"ManuallyDeactivated", EventSort::transient, BounceReason::filtered},
     {"Unconfirmed", EventSort::transient, BounceReason::filtered},
     {"SMTPApiError", EventSort::transient, BounceReason::system},
     {"TemplateRenderingFailed", EventSort::transient, BounceReason::system},
     {"AutoResponder", EventSort::auto_reply},
     {"AddressChange", EventSort::auto_reply},
     {"ChallengeVerification", EventSort::auto_reply},
     {"SpamComplaint", EventSort::complaint},
     {"Unsubscribe", EventSort::unsubscribed},
     {"Subscribe", EventSort::nothing},
     {"OpenRelayTest", EventSort::nothing},
     {"InboundError", EventSort::nothing},
     {"Delivery", EventSort::delivered},
     {"Open", EventSort::nothing},
     {"Click", EventSort::nothing},
     // Of a list: what is suppressed by Recipient, Customer or Admin, and why.
     {"ManualSuppression by Recipient", EventSort::unsubscribed},
     {"ManualSuppression by Customer", EventSort::nothing},
     {"ManualSuppression by Admin", EventSort::nothing},
     {"HardBounce by Recipient", EventSort::listed},
     {"SpamComplaint by Recipient", EventSort::complaint},
     {"reactivated", EventSort::nothing},
     {"TestEvent", EventSort::nothing}}};

std::string postmark_kind(const nlohmann::json& event) {
  const auto record = text_member(event, "RecordType");
  if (record == "Bounce" || record == "SpamComplaint") {
    auto type = text_member(event, "Type");
    return type.empty() && record == "SpamComplaint" ? record : type;
  }
  if (record != "SubscriptionChange") return record;
  const auto& suppresses = member(event, "SuppressSending");
  if (suppresses.is_boolean() && !suppresses.get<bool>()) return "reactivated";
  const auto reason = text_member(event, "SuppressionReason");
  const bool is_manual = reason == "ManualSuppression";
  return fmt::format("{} by {}", reason, is_manual ? text_member(event, "Origin") : "Recipient");
}

std::string postmark_problem(const nlohmann::json& event) {
  const auto record = text_member(event, "RecordType");
  if (record == "Inbound" || (record.empty() && member(event, "FromFull").is_object()))
    return "it is a mail that Postmark has received, and no event";
  return record.empty() ? "it is no event of Postmark: it has no RecordType" : std::string();
}

EventReading read_postmark(const nlohmann::json& event) {
  const auto kind = postmark_kind(event);
  auto address = text_member(event, "Email");
  if (address.empty()) address = text_member(event, "Recipient");
  auto words = text_member(event, "Details");
  if (words.empty()) words = text_member(event, "Description");
  EventMail mail{.id = text_member(member(event, "Metadata"), "mailroom")};
  const auto number = any_text(event, "ID");
  const auto message = text_member(event, "MessageID");
  if (!message.empty()) mail.key = fmt::format("{} {}", message, number);
  for (const auto* const key : {"BouncedAt", "DeliveredAt", "ChangedAt"}) {
    if (!mail.at) mail.at = any_moment(event, key);
  }
  return reading_of(postmark, find_rule(postmark_rules, kind), kind,
                    {.original = address, .diagnostic = words}, mail);
}

std::string postmark_header(std::string_view id) {
  return fmt::format("X-PM-Metadata-mailroom: {}", id);
}

}  // namespace

const Provider postmark{.name = "postmark",
                        .title = "Postmark",
                        .hosts = {"smtp.postmarkapp.com", "smtp-broadcasts.postmarkapp.com"},
                        .header = postmark_header,
                        .problem_of = postmark_problem,
                        .read = read_postmark};

}  // namespace mailroom::bounce
