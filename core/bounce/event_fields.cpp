// Members of the wrong type are as if they were not there: providers add to their events, and change them.

#include "bounce/event_fields.hpp"

#include <array>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::bounce {
namespace {

struct SubtypeRule {
  std::string_view subtype;
  BounceReason reason;
};

constexpr std::array<SubtypeRule, 4> subtype_rules{{{"MailboxFull", BounceReason::mailbox_full},
                                                    {"MessageTooLarge", BounceReason::message_too_big},
                                                    {"ContentRejected", BounceReason::content},
                                                    {"AttachmentRejected", BounceReason::content}}};

BounceReason reason_of_subtype(std::string_view subtype) {
  for (const auto& rule : subtype_rules)
    if (rule.subtype == subtype) return rule.reason;
  return BounceReason::undetermined;
}

/// The provider itself sent nothing, since mails to the address had come back before: its words are none of
/// the address's server.
bool is_on_list(const BounceType& type) {
  return type.subtype == "Suppressed" || type.subtype == "OnAccountSuppressionList";
}

}  // namespace

const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_member(const nlohmann::json& object, const char* key) {
  constexpr std::size_t longest = 8192;
  const auto& value = member(object, key);
  if (!value.is_string()) return {};
  const auto& text = value.get_ref<const std::string&>();
  return sound_utf8(std::string_view(text).substr(0, longest));
}

std::string name_member(const nlohmann::json& object, const char* key) {
  constexpr std::size_t longest = 998;
  auto text = text_member(object, key);
  const bool is_name = text.size() <= longest && is_printable(text) && text.find(' ') == std::string::npos;
  return is_name ? text : std::string();
}

std::string event_address(std::string_view text) {
  const auto bracket = text.rfind('<');
  auto address = report_address(bracket == std::string_view::npos ? text : text.substr(bracket));
  const bool is_address = address.find('@') != std::string::npos && is_printable(address);
  return is_address ? address : std::string();
}

std::optional<Moment> moment_member(const nlohmann::json& object, const char* key) {
  auto text = text_member(object, key);
  // Resend has `2026-11-22 23:41:12.126+00`, and nobody needs a fraction.
  if (const auto dot = text.find('.'); dot != std::string::npos)
    text.erase(dot, std::min(text.find_first_not_of("0123456789", dot + 1), text.size()) - dot);
  if (text.ends_with("+00")) text.replace(text.size() - 3, 3, "Z");
  if (text.size() < 10 || text[4] != '-') return std::nullopt;
  return parse_moment(text, Moment{});
}

BounceRecipient judge_event_recipient(const RecipientFields& fields, const BounceType& type) {
  auto own = fields;
  own.original = event_address(fields.original);
  own.is_permanent = type.type == "Permanent";
  // What an event of a bounce calls delivered came back all the same.
  if (own.action != "delayed") own.action = "failed";
  auto recipient = judge_recipient(own);
  if (type.type == "Permanent" && is_on_list(type)) {
    recipient.reason = BounceReason::user_unknown;
    recipient.kind = BounceKind::hard;
    return recipient;
  }
  if (recipient.kind == BounceKind::delayed) return recipient;
  // Amazon SES calls so what answers for somebody on holiday: no server said anything.
  const bool is_open = type.type == "Undetermined" || (type.type == "Transient" && type.subtype == "General");
  if (is_open && fields.status.empty() && fields.diagnostic.empty()) {
    recipient.kind = BounceKind::auto_reply;
    recipient.reason = BounceReason::vacation;
    return recipient;
  }
  const bool is_explained = recipient.reason != BounceReason::undetermined;
  if (!is_explained) recipient.reason = reason_of_subtype(type.subtype);
  const bool is_known = recipient.reason != BounceReason::undetermined;
  if (type.type == "Transient" || (is_known && !is_explained)) {
    recipient.kind = BounceKind::soft;
  } else if (type.type == "Permanent" && recipient.kind == BounceKind::undetermined) {
    recipient.reason = BounceReason::user_unknown;
    recipient.kind = BounceKind::hard;
  }
  return recipient;
}

void add_recipient(BounceRecipient recipient, Bounce& bounce) {
  if (bounce.recipients.size() < bounce_limits::max_recipients)
    bounce.recipients.push_back(std::move(recipient));
}

void add_recipient(std::string address, BounceKind kind, BounceReason reason, Bounce& bounce) {
  BounceRecipient recipient;
  recipient.address = std::move(address);
  recipient.kind = kind;
  recipient.reason = reason;
  add_recipient(std::move(recipient), bounce);
}

std::string event_key(std::string_view provider, std::string_view event, const BounceType& type,
                      const Bounce& bounce) {
  if (bounce.mail.id.empty()) return {};
  std::string key;
  for (const std::string_view part : {provider, event, std::string_view(bounce.mail.id),
                                      std::string_view(type.type), std::string_view(type.subtype)})
    key.append(part).append("\n");
  for (const auto& recipient : bounce.recipients)
    key.append(lower_case(recipient.address)).append("\n");
  return key;
}

}  // namespace mailroom::bounce
