// Reads reports in the form that any script can make: {"address", "kind", "reason", "message_id" or "token",
// "at"}. mailroom_report() of migrations/functions/bounces.sql takes the same.

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/text.hpp"
#include "bounce/event_rules.hpp"

namespace mailroom::bounce {

extern const Provider generic;

namespace {

struct KindWord {
  BounceKind kind;
  BounceReason reason;  ///< where the report gives none of our words
};

constexpr std::array<KindWord, 8> kind_words{{{BounceKind::hard, BounceReason::user_unknown},
                                              {BounceKind::soft, BounceReason::undetermined},
                                              {BounceKind::undetermined, BounceReason::undetermined},
                                              {BounceKind::complaint, BounceReason::feedback},
                                              {BounceKind::unsubscribed, BounceReason::unsubscribed},
                                              {BounceKind::delayed, BounceReason::undetermined},
                                              {BounceKind::auto_reply, BounceReason::vacation},
                                              {BounceKind::delivered, BounceReason::delivered}}};

const KindWord* kind_word(std::string_view name) {
  const auto found =
      std::ranges::find_if(kind_words, [&](const auto& word) { return bounce_kind_name(word.kind) == name; });
  return found == kind_words.end() ? nullptr : &*found;
}

/// A number of a token, or the id of a copy, which has a dash.
bool is_token(const std::string& text) {
  const auto number = parse_number<std::int64_t>(text.substr(0, text.find('-')));
  return number && *number > 0;
}

std::string generic_problem(const nlohmann::json& report) {
  if (!report.is_object()) return "it is no object";
  if (event_address(text_member(report, "address")).empty()) return "address is no address";
  const auto kind = text_member(report, "kind");
  if (kind_word(kind) == nullptr)
    return fmt::format(
        "kind '{}' is none of hard, soft, undetermined, complaint, unsubscribed, delayed, auto_reply and "
        "delivered",
        kind);
  const auto token = any_text(report, "token");
  if (token.empty() && text_member(report, "message_id").empty())
    return "it has neither message_id nor token";
  if (report.contains("token") && !is_token(token)) return fmt::format("token '{}' is none", token);
  if (report.contains("at") && !any_moment(report, "at")) return "at is no time";
  return {};
}

EventReading read_generic(const nlohmann::json& report) {
  Bounce bounce;
  bounce.is_standard = true;
  const auto& word = *kind_word(text_member(report, "kind"));
  const auto reason = text_member(report, "reason");
  const auto known = parse_bounce_reason(reason);
  add_recipient(event_address(text_member(report, "address")), word.kind, known.value_or(word.reason),
                bounce);
  if (!known) bounce.recipients.front().diagnostic = short_line(reason);
  const auto token = any_text(report, "token");
  const auto message_id = text_member(report, "message_id");
  if (token.find('-') == std::string::npos) {
    bounce.mail.token = parse_number<std::int64_t>(token).value_or(0);
  } else {
    bounce.envelope_id = token;
  }
  bounce.message_id = name_member(nlohmann::json{{"id", bare_message_id(message_id)}}, "id");
  bounce.mail.sent_at = any_moment(report, "at");
  bounce.happened_at = bounce.mail.sent_at;
  bounce.event = fmt::format("report\n{}\n{}\n{}\n{}\n{}\n{}", text_member(report, "address"),
                             text_member(report, "kind"), reason, message_id, token, any_text(report, "at"));
  return {.bounce = std::move(bounce)};
}

}  // namespace

const Provider generic{
    .name = "report", .title = "a script", .problem_of = generic_problem, .read = read_generic};

}  // namespace mailroom::bounce
