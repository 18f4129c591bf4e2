#include "cmd/tail/tail_report.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/moment.hpp"
#include "base/text.hpp"
#include "cmd/tail/event_text.hpp"

namespace mailroom {
namespace {

constexpr std::size_t time_width = 20;
constexpr std::size_t kind_width = 9;
constexpr std::size_t shortest_address = 6;
constexpr std::int64_t us_per_second = 1'000'000;

const char* colour_of(const std::string& state) {
  if (state == "due" || state == "emitted" || state == "consumed") return "\x1b[32m";
  if (state == "dead" || state == "suspended") return "\x1b[31m";
  return "\x1b[33m";
}

std::string token_details(const Event& event, std::optional<std::size_t> room) {
  const auto before =
      fmt::format("{:<10}  {} ", event.action == "activation" ? "activation" : "recovery", *event.account);
  // A new token is usually due, so only other states are shown.
  const bool is_odd = event.kind == EventKind::created && event.state != "due";
  const auto after = is_odd ? "  " + shown_text(event.state) : std::string();
  auto address = shown_text(event.email);
  if (room) {
    const auto taken = display_width(before) + display_width(after);
    address = fit(address, std::max<std::size_t>(*room > taken ? *room - taken : 0, shortest_address));
  }
  return before + address + after;
}

std::string skipped_text(const Event& event) {
  std::string text;
  const auto add = [&](int count, const char* reason) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(count), reason);
  };
  add(event.expired, "expired");
  add(event.consumed, "consumed");
  add(event.wrong_status, "wrong-status");
  add(event.invalid, "invalid");
  return text;
}

/// The tokens of a batch: all, or those that match the filter.
std::string batch_tokens(const Event& event) {
  const auto held = count_ids(event.tokens);
  if (event.matches) {
    return fmt::format("{} of {}: {}", event.matches->size(), counted(held, "token"), ids_text(event));
  }
  const auto count = event.kind == EventKind::emitted ? event.emitted : held;
  return counted(count, "token") + (held > 0 ? ": " + ids_text(event) : "");
}

/// A collector's name without the common prefix.
std::string collector_name(const std::string& name) {
  const std::string_view start = "mailroom ";
  return shown_text(name.compare(0, start.size(), start) == 0 ? name.substr(start.size()) : name);
}

std::string batch_details(const Event& event, const std::string& usual_queue) {
  const auto of_queue = event.queue == usual_queue ? std::string() : ", queue " + shown_text(event.queue);
  if (event.kind == EventKind::skipped) return skipped_text(event) + of_queue;
  auto text = batch_tokens(event);
  if (skipped(event) > 0) text += ", skipped " + skipped_text(event);
  if (event.kind == EventKind::dead) text += fmt::format(", {} attempts", event.attempts);
  if (event.kind == EventKind::taken_over) text += fmt::format(", attempt {}", event.attempts);
  return text + of_queue + ", by " + collector_name(event.actor);
}

std::int64_t number_in(const nlohmann::json& details, const char* key) {
  const auto found = details.find(key);
  return found != details.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// The figures of an operation. Only JSON shows details that are lists.
std::string operation_text(const Event& event) {
  const auto details = nlohmann::json::parse(sound_utf8(event.details));
  if (event.kind == EventKind::rewound) {
    const auto number = [&](const char* key) { return with_thousands(number_in(details, key)); };
    return fmt::format("cursor {} to {}, {} due", number("cursor_before"), number("cursor_after"),
                       number("replayed"));
  }
  if (event.kind == EventKind::replayed) {
    const auto until = details.find("until");
    return counted(number_in(details, "replayed"), "token") +
           (until != details.end() && until->is_string() ? " until " + shown_text(until->get<std::string>())
                                                         : "");
  }
  if (event.kind == EventKind::pruned) {
    return fmt::format("{} and {}", counted(number_in(details, "tokens"), "token"),
                       counted(number_in(details, "batches"), "batch record"));
  }
  return "";
}

std::string operation_details(const Event& event, std::optional<std::size_t> room) {
  auto text = operation_text(event);
  text += (text.empty() ? "by " : ", by ") + shown_text(event.actor);
  if (!event.reason.empty()) text += ": " + shown_text(event.reason);
  if (event.email.empty()) return text;
  auto address = shown_text(event.email);
  const auto taken = display_width(text) + 2;
  if (room)
    address = fit(address, std::max<std::size_t>(*room > taken ? *room - taken : 0, shortest_address));
  return address + ", " + text;
}

}  // namespace

std::string EventLines::render(const Event& event) {
  const auto subject = shown_text(subject_text(event));
  if (!subject.empty() && subject.front() != 'q') subject_width_ = std::max(subject_width_, subject.size());
  const auto subject_width = std::max(subject_width_, display_width(subject));
  const auto width = std::max(kind_width, kind_text(event.kind).size());
  std::optional<std::size_t> room;
  if (layout_.columns) {
    const auto taken = time_width + 2 + subject_width + 2 + width + 2;
    room = *layout_.columns > taken ? *layout_.columns - taken : 1;
  }
  return moment_text(event.time_us / us_per_second) + "  " + subject +
         std::string(subject_width - display_width(subject), ' ') + "  " + coloured_kind(event, width) +
         "  " + details(event, room) + "\n";
}

std::string EventLines::coloured_kind(const Event& event, std::size_t width) const {
  const auto kind = fmt::format("{:<{}}", kind_text(event.kind), width);
  return layout_.colour ? colour_of(event.state) + kind + "\x1b[0m" : kind;
}

std::string EventLines::details(const Event& event, std::optional<std::size_t> room) const {
  const auto text = event.token   ? token_details(event, room)
                    : event.batch ? batch_details(event, layout_.queue)
                                  : operation_details(event, room);
  return room ? fit(text, *room) : text;
}

namespace {

void add_account(nlohmann::ordered_json& object, const Event& event) {
  object["account"] = *event.account;
  if (event.email.empty()) return;
  object["email"] = event.email;
  object["login"] = event.login;
}

void add_token(nlohmann::ordered_json& object, const Event& event) {
  object["token"] = *event.token;
  object["action"] = event.action;
  add_account(object, event);
  object["expires_at"] = moment_json<nlohmann::ordered_json>(event.expires_at);
}

void add_batch(nlohmann::ordered_json& object, const Event& event) {
  object["batch"] = *event.batch;
  object["queue"] = event.queue;
  auto tokens = nlohmann::ordered_json::array();
  for (const auto& range : event.tokens) {
    for (auto id = range.first; id < range.end; ++id)
      tokens.push_back(id);
  }
  object["tokens"] = std::move(tokens);
  if (event.matches) object["matches"] = *event.matches;
  object["emitted"] = event.emitted;
  object["skipped"] = {{"expired", event.expired},
                       {"consumed", event.consumed},
                       {"wrong_status", event.wrong_status},
                       {"invalid", event.invalid}};
  object["attempts"] = event.attempts;
  object["actor"] = event.actor;
}

void add_operation(nlohmann::ordered_json& object, const Event& event) {
  if (event.account) add_account(object, event);
  if (!event.queue.empty()) object["queue"] = event.queue;
  object["actor"] = event.actor;
  object["reason"] = nullptr;
  if (!event.reason.empty()) object["reason"] = event.reason;
  object["details"] = nlohmann::ordered_json::parse(sound_utf8(event.details));
}

}  // namespace

std::string render_json(const Event& event) {
  const auto has_date = date_text(event.time_us / us_per_second).has_value();
  nlohmann::ordered_json object{{"time", has_date ? nlohmann::ordered_json(time_text(event)) : nullptr},
                                {"event", kind_text(event.kind)},
                                {"state", event.state}};
  if (event.token) {
    add_token(object, event);
  } else if (event.batch) {
    add_batch(object, event);
  } else {
    add_operation(object, event);
  }
  return json_text(object) + "\n";
}

}  // namespace mailroom
