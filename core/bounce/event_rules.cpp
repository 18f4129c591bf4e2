// The order of the switch is that of the table in docs/bounces.md.

#include "bounce/event_rules.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.hpp"

namespace mailroom::bounce {
namespace {

constexpr auto id_member = "mailroom";

BounceRecipient fixed_recipient(const RecipientFields& fields, BounceKind kind, BounceReason reason) {
  BounceRecipient recipient;
  recipient.address = event_address(fields.original);
  recipient.kind = kind;
  recipient.reason = reason;
  recipient.diagnostic = judge_recipient({.diagnostic = fields.diagnostic}).diagnostic;
  return recipient;
}

BounceRecipient judged_recipient(const EventRule& rule, const RecipientFields& fields,
                                 const BounceType& type) {
  auto recipient = judge_event_recipient(fields, type);
  if (recipient.reason == BounceReason::undetermined) recipient.reason = rule.reason;
  return recipient;
}

/// Of a few bytes, in seconds.
std::optional<Moment> moment_of_seconds(double seconds) {
  constexpr double furthest = 253'402'300'800;  // year 10000
  if (!std::isfinite(seconds) || seconds <= 0 || seconds >= furthest) return std::nullopt;
  return bounded_moment(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
}

}  // namespace

const EventRule* find_rule(std::span<const EventRule> rules, std::string_view name) {
  const auto rule = std::ranges::find(rules, name, &EventRule::name);
  return rule == rules.end() ? nullptr : &*rule;
}

BounceRecipient sort_event(const EventRule& rule, const RecipientFields& fields) {
  auto own = fields;
  switch (rule.sort) {
    case EventSort::complaint:
      return fixed_recipient(fields, BounceKind::complaint, BounceReason::feedback);
    case EventSort::unsubscribed:
      return fixed_recipient(fields, BounceKind::unsubscribed, BounceReason::unsubscribed);
    case EventSort::listed:
      return judged_recipient(rule, fields, {"Permanent", "Suppressed"});
    case EventSort::permanent:
      return judged_recipient(rule, fields, {"Permanent", ""});
    case EventSort::delivered:
      return fixed_recipient(fields, BounceKind::delivered, BounceReason::delivered);
    case EventSort::transient:
      return judged_recipient(rule, fields, {"Transient", ""});
    case EventSort::delayed:
      own.action = "delayed";
      return judged_recipient(rule, own, {"Transient", ""});
    case EventSort::auto_reply:
      return fixed_recipient(fields, BounceKind::auto_reply, BounceReason::vacation);
    case EventSort::undetermined:
    case EventSort::nothing:
      break;
  }
  return judged_recipient(rule, fields, {"", ""});
}

EventReading reading_of(const Provider& provider, const EventRule* rule, std::string_view name,
                        const RecipientFields& fields, const EventMail& mail) {
  if (rule == nullptr) return {.unknown = fmt::format("{} {}", provider.title, name)};
  if (rule->sort == EventSort::nothing) return {};
  Bounce bounce;
  bounce.is_standard = true;
  bounce.envelope_id = name_member(nlohmann::json{{"id", mail.id}}, "id");
  bounce.message_id = name_member(nlohmann::json{{"id", bare_message_id(mail.message_id)}}, "id");
  bounce.mail.sent_at = mail.at;
  add_recipient(sort_event(*rule, fields), bounce);
  if (!mail.key.empty())
    bounce.event = fmt::format("{}\n{}\n{}\n{}", provider.name, rule->name, mail.key,
                               lower_case(bounce.recipients.front().address));
  return {.bounce = std::move(bounce)};
}

std::optional<Moment> any_moment(const nlohmann::json& object, const char* key) {
  const auto& value = member(object, key);
  if (value.is_number()) return moment_of_seconds(value.get<double>());
  const auto seconds = parse_number<std::int64_t>(text_member(object, key));
  return seconds ? moment_of_seconds(static_cast<double>(*seconds)) : moment_member(object, key);
}

std::string any_text(const nlohmann::json& object, const char* key) {
  const auto& value = member(object, key);
  if (value.is_number_integer())
    return value.is_number_unsigned() ? std::to_string(value.get<std::uint64_t>())
                                      : std::to_string(value.get<std::int64_t>());
  return text_member(object, key);
}

std::string id_object(std::string_view id) {
  return fmt::format(R"({{"{}":"{}"}})", id_member, id);
}

std::string id_of_object(const nlohmann::json& object) {
  if (object.is_string()) return text_member(try_parse_json(object.get_ref<const std::string&>()), id_member);
  return text_member(object, id_member);
}

std::string bare_message_id(const std::string& id) {
  const bool has_brackets = id.starts_with('<') && id.ends_with('>');
  return has_brackets ? id.substr(1, id.size() - 2) : id;
}

std::string reply_of(const std::string& code, const std::string& words) {
  if (code.empty() || words.starts_with(code)) return words;
  return words.empty() ? code : code + " " + words;
}

}  // namespace mailroom::bounce
