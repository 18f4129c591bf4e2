// Reads the events of SparkPost, posted as an array, each within `msys` and the name of its class. They have
// no Message-ID, but the metadata that a header has set.

#include <array>
#include <fmt/format.h>

#include "bounce/event_rules.hpp"

namespace mailroom::bounce {

extern const Provider sparkpost;

namespace {

/// By the type, with the class of a bounce, of which some say more.
constexpr std::array<EventRule, 44> sparkpost_rules{
    {{"bounce", EventSort::transient},
     {"bounce 1", EventSort::undetermined},
     {"bounce 10", EventSort::permanent},
     {"bounce 30", EventSort::permanent},
     {"bounce 21", EventSort::transient, BounceReason::network},
     {"bounce 22", EventSort::transient, BounceReason::mailbox_full},
     {"bounce 23", EventSort::transient, BounceReason::message_too_big},
     {"bounce 24", EventSort::transient, BounceReason::expired},
     {"bounce 25", EventSort::transient, BounceReason::policy},
     {"bounce 50", EventSort::transient, BounceReason::blocked},
     {"bounce 51", EventSort::transient, BounceReason::spam},
     {"bounce 52", EventSort::transient, BounceReason::spam},
     {"bounce 53", EventSort::transient, BounceReason::content},
     {"bounce 54", EventSort::transient, BounceReason::relaying_denied},
     {"bounce 60", EventSort::auto_reply},
     {"bounce 80", EventSort::nothing},
     {"bounce 90", EventSort::unsubscribed},
     {"bounce 100", EventSort::auto_reply},
     {"delay", EventSort::delayed},
     {"delivery", EventSort::delivered},
     {"spam_complaint", EventSort::complaint},
     {"list_unsubscribe", EventSort::unsubscribed},
     {"link_unsubscribe", EventSort::unsubscribed},
     // The address is on a list of SparkPost, for whatever reason, or a rule of it applies.
     {"policy_rejection", EventSort::transient, BounceReason::filtered},
     {"generation_rejection", EventSort::transient, BounceReason::filtered},
     {"generation_failure", EventSort::transient, BounceReason::system},
     {"injection", EventSort::nothing},
     {"sms_status", EventSort::nothing},
     {"open", EventSort::nothing},
     {"initial_open", EventSort::nothing},
     {"click", EventSort::nothing},
     {"amp_open", EventSort::nothing},
     {"amp_initial_open", EventSort::nothing},
     {"amp_click", EventSort::nothing},
     {"ab_test_completed", EventSort::nothing},
     {"ab_test_cancelled", EventSort::nothing},
     {"success", EventSort::nothing},
     {"error", EventSort::nothing},
     {"relay_injection", EventSort::nothing},
     {"relay_rejection", EventSort::nothing},
     {"relay_delivery", EventSort::nothing},
     {"relay_tempfail", EventSort::nothing},
     {"relay_permfail", EventSort::nothing},
     {"", EventSort::nothing}}};  // SparkPost asks whether somebody listens

/// What is within the class; null for the question whether somebody listens.
const nlohmann::json& sparkpost_content(const nlohmann::json& event) {
  static const nlohmann::json none;
  const auto& classes = member(event, "msys");
  return classes.is_object() && !classes.empty() ? classes.front() : none;
}

const EventRule* sparkpost_rule(const nlohmann::json& content, std::string type) {
  // A bounce that came later as a mail.
  if (type == "out_of_band") type = "bounce";
  const auto* const exact =
      type == "bounce" ? find_rule(sparkpost_rules, type + " " + any_text(content, "bounce_class")) : nullptr;
  return exact == nullptr ? find_rule(sparkpost_rules, type) : exact;
}

std::string sparkpost_problem(const nlohmann::json& event) {
  if (!member(event, "msys").is_object()) return "it is no event of SparkPost: it has no msys";
  if (member(event, "msys").contains("relay_message"))
    return "it is a mail that SparkPost has received (relay_message), and no event";
  return {};
}

EventReading read_sparkpost(const nlohmann::json& event) {
  const auto& content = sparkpost_content(event);
  const auto type = text_member(content, "type");
  auto address = text_member(content, "raw_rcpt_to");
  if (address.empty()) address = text_member(content, "rcpt_to");
  auto words = text_member(content, "raw_reason");
  if (words.empty()) words = text_member(content, "reason");
  return reading_of(sparkpost, sparkpost_rule(content, type), type,
                    {.original = address, .diagnostic = words},
                    {.id = id_of_object(member(content, "rcpt_meta")),
                     .at = any_moment(content, "timestamp"),
                     .key = any_text(content, "event_id")});
}

std::string sparkpost_header(std::string_view id) {
  return fmt::format(R"(X-MSYS-API: {{"metadata":{}}})", id_object(id));
}

}  // namespace

const Provider sparkpost{.name = "sparkpost",
                         .title = "SparkPost",
                         .hosts = {"smtp.sparkpostmail.com", "smtp.eu.sparkpostmail.com"},
                         .header = sparkpost_header,
                         .problem_of = sparkpost_problem,
                         .read = read_sparkpost};

}  // namespace mailroom::bounce
