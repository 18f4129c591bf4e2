// Reads the events of Resend. An event is about all recipients in `to` alike; our mails have one each.

#include "base/json.hpp"
#include "base/text.hpp"
#include "bounce/event_fields.hpp"
#include "bounce/provider.hpp"

namespace mailroom::bounce {

extern const Provider resend;

namespace {

using Json = nlohmann::json;

constexpr std::string_view prefix = "email.";

/// Tags are an object in events, and were an array of objects with name and value.
std::string tag_of(const Json& tags, const std::string& name) {
  if (!tags.is_array()) return text_member(tags, name.c_str());
  for (const auto& tag : tags)
    if (text_member(tag, "name") == name) return text_member(tag, "value");
  return {};
}

void read_resend_mail(const Json& data, Bounce& bounce) {
  bounce.mail.id = name_member(data, "email_id");
  const auto& tags = member(data, "tags");
  bounce.mail.queue = tag_of(tags, "queue");
  bounce.mail.token = parse_number<std::int64_t>(tag_of(tags, "token")).value_or(0);
  bounce.mail.sent_at = moment_member(data, "created_at");
  auto id = text_member(data, "message_id");
  if (id.starts_with('<') && id.ends_with('>')) id = id.substr(1, id.size() - 2);
  bounce.mail.message_id = name_member(Json{{"id", id}}, "id");
}

/// The answers of the recipient's server where there are some, else the words of Resend.
std::string words_of(const Json& details) {
  const auto& answers = member(details, "diagnosticCode");
  std::string words = text_member(details, "diagnosticCode");
  for (const auto& answer : answers.is_array() ? answers : Json::array()) {
    if (answer.is_string() && words.size() < bounce_limits::max_diagnostic)
      words += (words.empty() ? "" : " ") + answer.get<std::string>();
  }
  return words.empty() ? text_member(details, "message") : words;
}

/// Calls `visit` with each recipient.
template <typename Visit>
void each_address(const Json& data, Visit visit) {
  const auto& to = member(data, "to");
  if (to.is_string()) visit(to.get<std::string>());
  for (const auto& address : to.is_array() ? to : Json::array())
    if (address.is_string()) visit(address.get<std::string>());
}

BounceType judge_alike(const Json& data, const Json& details, BounceType type, const char* action,
                       Bounce& bounce) {
  each_address(data, [&](const std::string& address) {
    add_recipient(
        judge_event_recipient({.original = address, .action = action, .diagnostic = words_of(details)}, type),
        bounce);
  });
  return type;
}

void add_alike(const Json& data, BounceKind kind, BounceReason reason, const std::string& words,
               Bounce& bounce) {
  each_address(data, [&](const std::string& address) {
    BounceRecipient recipient;
    recipient.address = event_address(address);
    recipient.kind = kind;
    recipient.reason = reason;
    recipient.diagnostic = judge_recipient({.diagnostic = words}).diagnostic;
    add_recipient(std::move(recipient), bounce);
  });
}

bool is_resend_event(const Json& object) {
  return text_member(object, "type").starts_with(prefix) && member(object, "data").is_object();
}

std::optional<Bounce> read_resend_bounce(const Json& event) {
  Bounce bounce;
  bounce.is_standard = true;
  const auto& data = member(event, "data");
  read_resend_mail(data, bounce);
  const auto type = text_member(event, "type").substr(prefix.size());
  BounceType details;
  if (type == "bounced") {
    const auto& said = member(data, "bounce");
    details =
        judge_alike(data, said, {name_member(said, "type"), name_member(said, "subType")}, "failed", bounce);
  } else if (type == "suppressed") {
    details = judge_alike(data, member(data, "suppressed"), {"Permanent", "Suppressed"}, "failed", bounce);
  } else if (type == "delivery_delayed") {
    details = judge_alike(data, member(data, "delivery_delayed"), {"Transient", ""}, "delayed", bounce);
  } else if (type == "complained") {
    add_alike(data, BounceKind::complaint, BounceReason::feedback, {}, bounce);
  } else if (type == "delivered") {
    add_alike(data, BounceKind::delivered, BounceReason::delivered, {}, bounce);
  } else if (type == "failed") {
    // A quota, a key, a domain: nothing of the address.
    add_alike(data, BounceKind::soft, BounceReason::system, text_member(member(data, "failed"), "reason"),
              bounce);
  } else {
    return std::nullopt;
  }
  bounce.event = event_key("resend", type, details, bounce);
  return bounce;
}

std::string resend_problem(const Json& event) {
  return is_resend_event(event) ? std::string()
                                : "it is no event of Resend: it has no type as email.bounced, or no data";
}

EventReading read_resend(const Json& event) {
  return {.bounce = read_resend_bounce(event)};
}

}  // namespace

/// Its events repeat no header.
const Provider resend{.name = "resend",
                      .title = "Resend",
                      .hosts = {"smtp.resend.com"},
                      .problem_of = resend_problem,
                      .read = read_resend};

}  // namespace mailroom::bounce
