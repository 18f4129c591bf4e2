// Reads the events of Brevo, alone or as an array. Its events have an id of Brevo's own as message-id, or the
// mail's, and what the header X-Mailin-custom had. They have no ids.

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "bounce/event_rules.hpp"

namespace mailroom::bounce {

extern const Provider brevo;

namespace {

/// By the event without its underlines: some pages have `hardBounce`, and events `hard_bounce`.
constexpr std::array<EventRule, 20> brevo_rules{{{"hardbounce", EventSort::permanent},
                                                 {"invalidemail", EventSort::permanent},
                                                 {"invalid", EventSort::permanent},
                                                 {"softbounce", EventSort::transient},
                                                 // On a list of Brevo, for whatever reason.
                                                 {"blocked", EventSort::transient, BounceReason::filtered},
                                                 {"error", EventSort::transient, BounceReason::system},
                                                 {"deferred", EventSort::delayed},
                                                 {"delivered", EventSort::delivered},
                                                 {"spam", EventSort::complaint},
                                                 {"complaint", EventSort::complaint},
                                                 {"unsubscribed", EventSort::unsubscribed},
                                                 {"unsubscribe", EventSort::unsubscribed},
                                                 {"request", EventSort::nothing},
                                                 {"sent", EventSort::nothing},
                                                 {"opened", EventSort::nothing},
                                                 {"uniqueopened", EventSort::nothing},
                                                 {"proxyopen", EventSort::nothing},
                                                 {"uniqueproxyopen", EventSort::nothing},
                                                 {"click", EventSort::nothing},
                                                 {"listaddition", EventSort::nothing}}};

std::string brevo_kind(const nlohmann::json& event) {
  auto kind = lower_case(text_member(event, "event"));
  std::erase(kind, '_');
  return kind;
}

std::string brevo_problem(const nlohmann::json& event) {
  if (member(event, "items").is_array()) return "it is mail that Brevo has received, and no event";
  const bool is_event = !text_member(event, "event").empty() && !text_member(event, "message-id").empty();
  return is_event ? std::string() : "it is no event of a mail from Brevo: it lacks event or message-id";
}

EventReading read_brevo(const nlohmann::json& event) {
  const auto kind = brevo_kind(event);
  EventMail mail{.id = id_of_object(member(event, "X-Mailin-custom")),
                 .message_id = text_member(event, "message-id"),
                 .at = any_moment(event, "ts_event")};
  return reading_of(brevo, find_rule(brevo_rules, kind), kind,
                    {.original = text_member(event, "email"), .diagnostic = text_member(event, "reason")},
                    mail);
}

std::string brevo_header(std::string_view id) {
  return "X-Mailin-custom: " + id_object(id);
}

}  // namespace

const Provider brevo{.name = "brevo",
                     .title = "Brevo",
                     .hosts = {"smtp-relay.brevo.com", "smtp-relay.sendinblue.com"},
                     .header = brevo_header,
                     .problem_of = brevo_problem,
                     .read = read_brevo};

}  // namespace mailroom::bounce
