// The order of the checks: what is required, types, values; the first fault is answered.

#include "resend_api/mail_fields.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "mail/address.hpp"
#include "resend_api/attachments.hpp"
#include "resend_api/schedule.hpp"
#include "submission/mail_time.hpp"
#include "submission/submitted_mail.hpp"

namespace mailroom::resend_api {
namespace {

using http_door::Defaults;
using http_door::Fault;
using http_door::Problem;
using http_door::RoleView;
using Json = nlohmann::json;

constexpr std::size_t most_to = 50;
constexpr std::size_t most_tags = 75;
constexpr auto longest_ahead = std::chrono::days(366);
constexpr auto longest_ago = std::chrono::minutes(15);

Fault bad_value(const std::string& words) {
  return {Problem::bad_value, words};
}

Fault missing(std::string_view field) {
  return {Problem::missing_field, fmt::format("Missing `{}` field.", field)};
}

/// The member; null if it is missing, null, or an empty array or object.
const Json& member(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.find(name);
  if (found == object.end() || ((found->is_array() || found->is_object()) && found->empty())) return none;
  return *found;
}

bool is_empty(const Json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty());
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// True if a text in it has U+0000, which PostgreSQL cannot keep.
bool has_nul(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().find('\0') != std::string::npos;
  if (!value.is_structured()) return false;
  for (const auto& [name, each] : value.items())
    if ((value.is_object() && name.find('\0') != std::string::npos) || has_nul(each)) return true;
  return false;
}

std::optional<Fault> problem_of_required(const Json& mail) {
  if (is_empty(member(mail, "from"))) return missing("from");
  if (is_empty(member(mail, "to"))) return missing("to");
  if (!member(mail, "template").is_null()) return std::nullopt;
  if (is_empty(member(mail, "subject"))) return missing("subject");
  if (is_empty(member(mail, "html")) && is_empty(member(mail, "text")))
    return Fault{Problem::missing_field, "Missing `html` or `text` field."};
  return std::nullopt;
}

std::optional<Fault> problem_of_types(const Json& mail) {
  constexpr std::array<std::string_view, 14> known{
      "from", "to",       "cc",      "bcc",  "reply_to",    "subject",      "html",
      "text", "template", "headers", "tags", "attachments", "scheduled_at", "topic_id"};
  for (const auto& [name, value] : mail.items()) {
    if (!value.is_null() && std::ranges::find(known, name) == known.end())
      return bad_value(fmt::format("`{}` is no field of a mail", name.substr(0, 100)));
  }
  for (const auto* name : {"from", "subject", "html", "text", "scheduled_at", "topic_id"}) {
    const auto& value = member(mail, name);
    if (!value.is_null() && !value.is_string()) return bad_value(fmt::format("`{}` must be a string", name));
  }
  for (const auto& [name, value] : mail.items())
    if (has_nul(value)) return bad_value(fmt::format("`{}` has the character U+0000", name));
  return std::nullopt;
}

/// The mailboxes of a field, which is one as a string or an array of them.
std::variant<std::vector<std::string>, Fault> read_mailboxes(const Json& mail, const char* name) {
  const auto& value = member(mail, name);
  std::vector<std::string> all;
  if (is_empty(value)) return all;
  const auto list = value.is_string() ? Json::array({value}) : value;
  if (!list.is_array()) return bad_value(fmt::format("`{}` must be a string or an array of strings", name));
  for (const auto& each : list) {
    if (!each.is_string())
      return bad_value(fmt::format("`{}` must be a string or an array of strings", name));
    const auto text = std::string(trimmed(each.get_ref<const std::string&>()));
    const auto parsed = mail::parse_mailbox(text);
    if (const auto* refusal = std::get_if<mail::Refusal>(&parsed)) {
      const auto shown =
          has_control(text) ? std::string("a text with a line end") : "\"" + text.substr(0, 100) + "\"";
      return bad_value(fmt::format(
          "`{}` has {}, which is no mailbox: {}. Write email@example.com or Name <email@example.com>", name,
          shown, refusal->reason));
    }
    all.push_back(text);
  }
  return all;
}

std::optional<Fault> add_mailboxes(const Json& mail, Json& arguments) {
  std::size_t count = 0;
  constexpr std::array<std::pair<const char*, const char*>, 3> fields{
      {{"to", "recipients"}, {"cc", "cc"}, {"bcc", "bcc"}}};
  for (const auto& [field, argument] : fields) {
    auto read = read_mailboxes(mail, field);
    if (auto* fault = std::get_if<Fault>(&read)) return std::move(*fault);
    auto& mailboxes = std::get<std::vector<std::string>>(read);
    if (std::string_view(field) == "to" && mailboxes.size() > most_to)
      return bad_value(
          fmt::format("`to` has {} mailboxes, at most {} are allowed", mailboxes.size(), most_to));
    count += mailboxes.size();
    if (!mailboxes.empty()) arguments[argument] = std::move(mailboxes);
  }
  if (count > 100)
    return bad_value(fmt::format("`to`, `cc` and `bcc` have {} mailboxes, at most 100 are allowed", count));
  auto replies = read_mailboxes(mail, "reply_to");
  if (auto* fault = std::get_if<Fault>(&replies)) return std::move(*fault);
  const auto& all = std::get<std::vector<std::string>>(replies);
  if (!all.empty()) arguments["reply_to"] = joined(all, ", ");
  return std::nullopt;
}

std::optional<Fault> add_sender(const Json& mail, const RoleView& role, Json& arguments) {
  auto read = read_mailboxes(mail, "from");
  if (auto* fault = std::get_if<Fault>(&read)) return std::move(*fault);
  const auto& text = std::get<std::vector<std::string>>(read).front();
  const auto parsed = mail::parse_mailbox(text);
  const auto address = lower_case(std::get<mail::Mailbox>(parsed).address.text());
  if (!submission::is_sender_allowed(address, role.senders))
    return Fault{Problem::foreign_sender,
                 fmt::format("This key may not mail from `{}` (submission.senders)", address)};
  arguments["sender"] = text;
  return std::nullopt;
}

std::optional<Fault> add_content(const Json& mail, Json& arguments) {
  const auto& subject = member(mail, "subject");
  if (!is_empty(subject)) {
    const auto& text = subject.get_ref<const std::string&>();
    if (has_control(text)) return bad_value("`subject` has a line end or another control character");
    arguments["subject"] = text;
  }
  for (const auto* name : {"html", "text"})
    if (!is_empty(member(mail, name))) arguments[name] = member(mail, name);
  const auto& templ = member(mail, "template");
  if (templ.is_null()) return std::nullopt;
  if (!templ.is_object()) return bad_value("`template` must be an object with `id` and `variables`");
  if (arguments.contains("html") || arguments.contains("text"))
    return bad_value("`template` excludes `html` and `text`");
  for (const auto& [name, value] : templ.items())
    if (!value.is_null() && name != "id" && name != "variables")
      return bad_value(fmt::format("`template` has no member `{}`", name.substr(0, 100)));
  const auto& id = member(templ, "id");
  if (is_empty(id)) return missing("template.id");
  if (!id.is_string()) return bad_value("`template.id` must be a string");
  arguments["template"] = id;
  const auto& variables = member(templ, "variables");
  if (variables.is_null()) return std::nullopt;
  if (!variables.is_object()) return bad_value("`template.variables` must be an object");
  for (const auto& [name, value] : variables.items())
    if (!value.is_string() && !value.is_number())
      return bad_value(fmt::format("`template.variables` has `{}`, which is neither a string nor a number",
                                   name.substr(0, 100)));
  arguments["data"] = variables;
  return std::nullopt;
}

/// What a header of mailroom means, which is taken out. True if it is one.
std::variant<bool, Fault> take_option(const std::string& name, const std::string& value, const RoleView& role,
                                      ReadMail& read) {
  const auto lower = lower_case(name);
  const bool is_key = lower == "idempotency-key";
  if (!is_key && !lower.starts_with("x-mailroom-") && lower != "resend-idempotency-key") return false;
  if (!is_key && !role.header_options) return true;
  auto& arguments = read.arguments;
  if (is_key || lower == "x-mailroom-key" || lower == "resend-idempotency-key") {
    if (!is_key || !read.key) read.key = value;
  } else if (lower == "x-mailroom-reference" || lower == "x-mailroom-profile" ||
             lower == "x-mailroom-action" || lower == "x-mailroom-topic") {
    arguments[lower.substr(std::string_view("x-mailroom-").size())] = value;
  } else if (lower == "x-mailroom-send-after" || lower == "x-mailroom-expires-at") {
    const auto moment = submission::parse_mail_time(value);
    if (!moment) return bad_value(fmt::format("`headers` has a `{}` that is no time with an offset", name));
    arguments[lower == "x-mailroom-send-after" ? "send_after" : "expires_at"] = precise_moment_text(*moment);
  } else {
    return bad_value(fmt::format("`headers` has `{}`, which is not known", name.substr(0, 100)));
  }
  return true;
}

std::optional<Fault> add_headers(const Json& mail, const RoleView& role, ReadMail& read) {
  const auto& headers = member(mail, "headers");
  if (headers.is_null()) return std::nullopt;
  if (!headers.is_object()) return bad_value("`headers` must be an object of strings");
  auto kept = Json::object();
  for (const auto& [name, value] : headers.items()) {
    if (!value.is_string())
      return bad_value(fmt::format("`headers` has `{}`, which must be a string", name.substr(0, 100)));
    const auto& text = value.get_ref<const std::string&>();
    if (has_control(text))
      return bad_value(fmt::format("`headers` has `{}` with a line end or another control character",
                                   name.substr(0, 100)));
    auto taken = take_option(name, text, role, read);
    if (auto* fault = std::get_if<Fault>(&taken)) return std::move(*fault);
    if (!std::get<bool>(taken)) kept[name] = value;
  }
  if (!kept.empty()) read.arguments["headers"] = std::move(kept);
  return std::nullopt;
}

bool is_tag_word(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().size() <= 256 &&
         !value.get_ref<const std::string&>().empty() &&
         std::ranges::all_of(value.get_ref<const std::string&>(),
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

std::optional<Fault> add_tags(const Json& mail, Json& arguments) {
  const auto& tags = member(mail, "tags");
  if (tags.is_null()) return std::nullopt;
  if (!tags.is_array() || tags.size() > most_tags)
    return bad_value(fmt::format("`tags` must be an array of at most {} objects", most_tags));
  auto all = Json::object();
  for (const auto& tag : tags) {
    const bool is_tag = tag.is_object() && tag.size() == 2 && is_tag_word(member(tag, "name")) &&
                        is_tag_word(member(tag, "value"));
    if (!is_tag)
      return bad_value(
          "`tags` has one that is not a `name` and a `value` of 1 to 256 letters, digits, - and _");
    if (all.contains(tag.at("name").get<std::string>()))
      return bad_value(fmt::format("`tags` has `{}` twice", tag.at("name").get<std::string>()));
    all[tag.at("name").get<std::string>()] = tag.at("value");
  }
  arguments["options"]["tags"] = std::move(all);
  return std::nullopt;
}

}  // namespace

std::variant<Moment, Fault> read_schedule(const Json& value, const Defaults& defaults) {
  if (!value.is_string()) return bad_value("`scheduled_at` must be a string");
  const auto moment = parse_schedule(value.get_ref<const std::string&>(), defaults.now, defaults.timezone);
  if (!moment)
    return bad_value(fmt::format("`scheduled_at` is no time that is understood: {}", schedule_forms));
  if (*moment < defaults.now - longest_ago) return bad_value("`scheduled_at` has passed");
  if (*moment > defaults.now + longest_ahead) return bad_value("`scheduled_at` is more than a year ahead");
  return *moment;
}

std::variant<ReadMail, Fault> read_mail(const Json& object, const RoleView& role, const Defaults& defaults) {
  if (!object.is_object()) return bad_value("A mail must be an object");
  if (auto fault = problem_of_required(object)) return std::move(*fault);
  if (auto fault = problem_of_types(object)) return std::move(*fault);
  ReadMail read{.arguments = Json::object()};
  auto& arguments = read.arguments;
  if (auto fault = add_sender(object, role, arguments)) return std::move(*fault);
  if (auto fault = add_mailboxes(object, arguments)) return std::move(*fault);
  if (auto fault = add_content(object, arguments)) return std::move(*fault);
  if (auto fault = add_headers(object, role, read)) return std::move(*fault);
  if (auto fault = add_tags(object, arguments)) return std::move(*fault);
  if (!member(object, "attachments").is_null()) {
    auto files = read_attachments(object.at("attachments"), defaults.attachment_hosts, read.files);
    if (auto* fault = std::get_if<Fault>(&files)) return std::move(*fault);
    arguments["attachments"] = std::get<Json>(std::move(files));
  }
  if (!is_empty(member(object, "scheduled_at"))) {
    const auto moment = read_schedule(object.at("scheduled_at"), defaults);
    if (const auto* fault = std::get_if<Fault>(&moment)) return *fault;
    if (std::get<Moment>(moment) > defaults.now)
      arguments["send_after"] = precise_moment_text(std::get<Moment>(moment));
  }
  const auto& topic = member(object, "topic_id");
  if (!is_empty(topic)) {
    // Ignoring it could mail somebody who wants none.
    if (is_uuid(topic.get_ref<const std::string&>()))
      return bad_value("`topic_id` is the name of a topic here, as mailroom topic list shows it");
    arguments["topic"] = topic;
  }
  return read;
}

}  // namespace mailroom::resend_api
