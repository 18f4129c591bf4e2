// Reads the events of Amazon SES. Both forms have the same members below the name of their type. Tags are in
// the events of configuration sets, headers where the identity's notifications include them.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "bounce/event_fields.hpp"
#include "bounce/provider.hpp"

namespace mailroom::bounce {

extern const Provider ses;

namespace {

using Json = nlohmann::json;

/// `delivery delay` and `DeliveryDelay` as `deliverydelay`.
std::string type_of(const Json& event) {
  auto type = text_member(event, "eventType");
  if (type.empty()) type = text_member(event, "notificationType");
  return lower_case(type);
}

std::string first_tag(const Json& tags, const char* name) {
  const auto& values = member(tags, name);
  return values.is_array() && !values.empty() && values[0].is_string() ? values[0].get<std::string>()
                                                                       : std::string();
}

/// The Message-ID that the mail left with: SES keeps it in the headers, and sends its own.
std::string message_id_of(const Json& mail) {
  const auto& headers = member(mail, "headers");
  for (const auto& header : headers.is_array() ? headers : Json::array()) {
    if (lower_case(text_member(header, "name")) == "message-id") return text_member(header, "value");
  }
  return text_member(member(mail, "commonHeaders"), "messageId");
}

void read_ses_mail(const Json& mail, Bounce& bounce) {
  bounce.mail.id = name_member(mail, "messageId");
  const auto& tags = member(mail, "tags");
  bounce.mail.queue = first_tag(tags, "queue");
  bounce.mail.token = parse_number<std::int64_t>(first_tag(tags, "token")).value_or(0);
  bounce.mail.sent_at = moment_member(mail, "timestamp");
  bounce.envelope_id = name_member(Json{{"id", first_tag(tags, "mailroom")}}, "id");
  auto id = message_id_of(mail);
  if (id.starts_with('<') && id.ends_with('>')) id = id.substr(1, id.size() - 2);
  bounce.message_id = name_member(Json{{"id", id}}, "id");
}

/// Calls `visit` with each recipient in an array of objects.
template <typename Visit>
void each_recipient(const Json& details, const char* key, Visit visit) {
  const auto& recipients = member(details, key);
  for (const auto& recipient : recipients.is_array() ? recipients : Json::array()) {
    if (recipient.is_object()) visit(recipient);
  }
}

RecipientFields fields_of(const Json& recipient, const Json& details) {
  return {.original = text_member(recipient, "emailAddress"),
          .action = lower_case(text_member(recipient, "action")),
          .status = text_member(recipient, "status"),
          .diagnostic = text_member(recipient, "diagnosticCode"),
          .remote_mta = text_member(details, "reportingMTA")};
}

BounceType read_bounces(const Json& details, Bounce& bounce) {
  BounceType type{.type = name_member(details, "bounceType"),
                  .subtype = name_member(details, "bounceSubType")};
  each_recipient(details, "bouncedRecipients", [&](const Json& recipient) {
    add_recipient(judge_event_recipient(fields_of(recipient, details), type), bounce);
  });
  return type;
}

BounceType read_delays(const Json& details, Bounce& bounce) {
  const BounceType type{.type = "Transient", .subtype = name_member(details, "delayType")};
  each_recipient(details, "delayedRecipients", [&](const Json& recipient) {
    auto fields = fields_of(recipient, details);
    fields.action = "delayed";
    add_recipient(judge_event_recipient(fields, type), bounce);
  });
  return type;
}

/// Recipients who did not complain are listed too, if they share the domain of one who did; our mails have
/// one recipient each.
BounceType read_complaints(const Json& details, Bounce& bounce) {
  const BounceType type{.type = name_member(details, "complaintFeedbackType"),
                        .subtype = name_member(details, "complaintSubType")};
  const bool is_complaint = type.type != "auth-failure" && type.type != "not-spam";
  each_recipient(details, "complainedRecipients", [&](const Json& recipient) {
    add_recipient(event_address(text_member(recipient, "emailAddress")),
                  is_complaint ? BounceKind::complaint : BounceKind::undetermined, BounceReason::feedback,
                  bounce);
  });
  return type;
}

/// Adds the recipients that are in an array of texts.
void add_listed(const Json& addresses, BounceKind kind, BounceReason reason, Bounce& bounce) {
  for (const auto& address : addresses.is_array() ? addresses : Json::array()) {
    if (address.is_string()) add_recipient(event_address(address.get<std::string>()), kind, reason, bounce);
  }
}

bool is_ses_event(const Json& object) {
  return !type_of(object).empty() && member(object, "mail").is_object();
}

std::optional<Bounce> read_ses_bounce(const Json& event) {
  Bounce bounce;
  bounce.is_standard = true;
  const auto& mail = member(event, "mail");
  read_ses_mail(mail, bounce);
  const auto type = type_of(event);
  BounceType details;
  if (type == "bounce") {
    details = read_bounces(member(event, "bounce"), bounce);
  } else if (type == "complaint") {
    details = read_complaints(member(event, "complaint"), bounce);
  } else if (type == "deliverydelay") {
    details = read_delays(member(event, "deliveryDelay"), bounce);
  } else if (type == "delivery") {
    add_listed(member(member(event, "delivery"), "recipients"), BounceKind::delivered,
               BounceReason::delivered, bounce);
  } else if (type == "reject") {
    // SES has found something harmful in the mail.
    add_listed(member(mail, "destination"), BounceKind::soft, BounceReason::virus, bounce);
  } else {
    return std::nullopt;
  }
  bounce.event = event_key("ses", type, details, bounce);
  return bounce;
}

std::string ses_problem(const Json& event) {
  return is_ses_event(event) ? std::string() : "it is no event of Amazon SES: it has no eventType or no mail";
}

EventReading read_ses(const Json& event) {
  return {.bounce = read_ses_bounce(event)};
}

std::string ses_header(std::string_view id) {
  return fmt::format("X-SES-MESSAGE-TAGS: mailroom={}", id);
}

}  // namespace

const Provider ses{.name = "ses",
                   .title = "Amazon SES",
                   .hosts = {"email-smtp.*.amazonaws.com", "email-smtp-fips.*.amazonaws.com"},
                   .header = ses_header,
                   .problem_of = ses_problem,
                   .read = read_ses};

}  // namespace mailroom::bounce
