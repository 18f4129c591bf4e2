#include "cmd/tail/event_template.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cmd/events/event_text.hpp"

namespace mailroom {
namespace {

/// The member of a record, as text; empty if the event has no such record.
template <typename Record, typename Value>
std::string shown(const Record* record, Value Record::*member) {
  return record == nullptr ? "" : fmt::format("{}", record->*member);
}

std::string skipped(const Event& event) {
  return event.batch() == nullptr ? "" : std::to_string(event.batch()->skipped.total());
}

std::string code(const Event& event) {
  return event.delivery() == nullptr || event.delivery()->code == 0 ? ""
                                                                    : std::to_string(event.delivery()->code);
}

struct Placeholder {
  std::string_view name;
  std::string (*text)(const Event&);
};

constexpr std::array<Placeholder, 20> placeholders{{
    {"time", [](const Event& event) { return time_text(event); }},
    {"event", [](const Event& event) { return std::string(kind_text(event.kind)); }},
    {"state", [](const Event& event) { return event.state(); }},
    {"subject", [](const Event& event) { return subject_text(event); }},
    {"token", [](const Event& event) { return shown(event.subject_token(), &StoredToken::id); }},
    {"action", [](const Event& event) { return shown(event.subject_token(), &StoredToken::action); }},
    {"account", [](const Event& event) { return shown(event.account(), &AccountRecord::id); }},
    {"email", [](const Event& event) { return shown(event.account(), &AccountRecord::email); }},
    {"login", [](const Event& event) { return shown(event.account(), &AccountRecord::login); }},
    {"batch", [](const Event& event) { return shown(event.batch(), &BatchRecord::id); }},
    {"queue", [](const Event& event) { return event.queue(); }},
    {"tokens", [](const Event& event) { return ids_text(event); }},
    {"emitted", [](const Event& event) { return shown(event.batch(), &BatchRecord::emitted); }},
    {"skipped", [](const Event& event) { return skipped(event); }},
    {"attempt", [](const Event& event) { return shown(event.batch(), &BatchRecord::attempts); }},
    {"actor", [](const Event& event) { return event.actor(); }},
    {"sink", [](const Event& event) { return shown(event.delivery(), &DeliveryAttempt::sink); }},
    {"code", [](const Event& event) { return code(event); }},
    {"reply", [](const Event& event) { return shown(event.delivery(), &DeliveryAttempt::reply); }},
    {"reason", [](const Event& event) { return shown(event.operation(), &Operation::reason); }},
}};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& placeholder : placeholders)
    all.emplace_back(placeholder.name);
  return all;
}

Error unknown_placeholder(std::string_view name) {
  const auto meant = nearest_word(name, names());
  return {ExitCode::usage,
          fmt::format("--template has an unknown placeholder {{{}}}{}", printable(name),
                      meant.empty() ? "" : fmt::format("; did you mean {{{}}}?", meant)),
          "placeholders: " + template_placeholders()};
}

Error lone_brace(char brace) {
  return {ExitCode::usage, fmt::format("--template has an unmatched {}", brace),
          fmt::format("type {0}{0} for the character itself, {{name}} for a placeholder", brace)};
}

auto find_field(std::string_view name) {
  const auto found = std::find_if(placeholders.begin(), placeholders.end(),
                                  [&](const auto& placeholder) { return placeholder.name == name; });
  if (found == placeholders.end()) throw unknown_placeholder(name);
  return found->text;
}

char unescape(char c) {
  if (c == 'n') return '\n';
  if (c == 't') return '\t';
  if (c == '\\') return '\\';
  throw Error(ExitCode::usage, "--template has an unknown escape",
              "type \\n for a new line, \\t for a tab, \\\\ for a backslash");
}

}  // namespace

EventTemplate::EventTemplate(std::string_view text) {
  std::string literal;
  while (!text.empty()) {
    const char c = text.front();
    const char next = text.size() > 1 ? text[1] : '\0';
    std::size_t taken = 1;
    if (c == '\\') {
      literal += unescape(next);
      taken = 2;
    } else if ((c == '{' || c == '}') && next == c) {
      literal += c;
      taken = 2;
    } else if (c == '{') {
      const auto end = text.find('}');
      if (end == std::string_view::npos) throw lone_brace(c);
      pieces_.push_back({std::exchange(literal, {}), find_field(text.substr(1, end - 1))});
      taken = end + 1;
    } else if (c == '}') {
      throw lone_brace(c);
    } else {
      literal += c;
    }
    text.remove_prefix(taken);
  }
  pieces_.push_back({literal + "\n", nullptr});
}

std::string EventTemplate::render(const Event& event) const {
  std::string line;
  for (const auto& piece : pieces_) {
    line += piece.literal;
    if (piece.field == nullptr) continue;
    const auto text = piece.field(event);
    line += text.empty() ? "-" : shown_text(text);
  }
  return line;
}

std::string template_placeholders() {
  return fmt::format("{{{}}}", fmt::join(names(), "}, {"));
}

}  // namespace mailroom
