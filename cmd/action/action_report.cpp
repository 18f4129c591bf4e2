// What an action is in words, and what a change of it means for messages and queues.

#include "cmd/action/action_report.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

using ActionJson = nlohmann::ordered_json;

std::string takers_text(const std::string& action, const queue::QueueCatalogue& catalogue) {
  const auto takers = queue::takers_of(action, catalogue);
  return takers.empty() ? "none" : shown_text(joined(takers, ","));
}

ActionJson properties_json_of(const queue::Action& action) {
  return {{"number", action.number},
          {"path", text_or_null<ActionJson>(action.path)},
          {"has_code", action.has_code},
          {"account_status", text_or_null<ActionJson>(action.account_status)},
          {"lifetime_seconds", action.lifetime ? ActionJson(action.lifetime->count()) : ActionJson(nullptr)},
          {"template", text_or_null<ActionJson>(action.template_name)},
          {"security", action.security},
          {"producer", text_or_null<ActionJson>(action.producer)}};
}

/// Which queue has the tokens of a new action.
std::string taken_note(const std::string& action, const queue::QueueCatalogue& catalogue) {
  const auto takers = queue::takers_of(action, catalogue);
  if (takers.empty()) {
    return fmt::format("No queue takes it: mailroom queue create {0} --action {0}, or queue set, lets one.\n",
                       action);
  }
  const auto names = shown_text(joined(takers, takers.size() == 2 ? " and " : ", "));
  return takers.size() == 1
             ? fmt::format("Queue {} takes it.\n", names)
             : fmt::format("Queues {} take it: each person is mailed more than once.\n", names);
}

std::string notes_on(const queue::ActionChange& change, const queue::QueueCatalogue& catalogue) {
  const auto& after = change.after;
  std::string notes;
  if (change.is_new) {
    notes += "Its name, number, path and code never change: signatures depend on them.\n";
    if (!after.path.empty() && after.producer.empty())
      notes += "Whoever may send messages may ask for its links; --producer ROLE reserves it.\n";
    if (!after.account_status.empty())
      notes +=
          fmt::format("It mails accounts only, and only while their status is {}.\n", after.account_status);
    return notes + taken_note(after.name, catalogue);
  }
  if (change.before.account_status != after.account_status)
    notes += "This holds for tokens that wait, too.\n";
  if (change.before.lifetime != after.lifetime) notes += "The lifetime holds for new tokens.\n";
  return notes;
}

}  // namespace

std::string render_action_list(const queue::QueueCatalogue& catalogue, std::size_t width) {
  TextTable table({{"action"},
                   {"number", TextTable::Align::right},
                   {"path"},
                   {"code"},
                   {"status"},
                   {"lifetime"},
                   {"template"},
                   {"queues"}});
  for (const auto& action : catalogue.actions.all()) {
    const auto texts = queue::action_texts(action);
    const auto name = queue::short_action_name(action.name) + (action.is_retired ? " (retired)" : "");
    table.add({shown_text(name), texts[0].value, shown_text(texts[1].value), texts[2].value, texts[3].value,
               texts[4].value, shown_text(texts[5].value), takers_text(action.name, catalogue)});
  }
  return table.render(width);
}

std::string render_action(const queue::Action& action, const queue::QueueCatalogue& catalogue,
                          std::size_t width) {
  TextTable table({{""}, {""}});
  table.add({"action", shown_text(action.name)});
  for (const auto& text : queue::action_texts(action))
    table.add({text.name, shown_text(text.value)});
  table.add({"retired", action.is_retired ? "yes" : "no"});
  table.add({"queues", takers_text(action.name, catalogue)});
  return table.render(width);
}

std::string render_change(const queue::ActionChange& change, const queue::QueueCatalogue& catalogue) {
  const auto subject = "action " + shown_text(change.after.name);
  const auto before = queue::action_texts(change.before);
  const auto after = queue::action_texts(change.after);
  std::string text = change.is_new ? subject + ": create\n" : "";
  for (std::size_t i = 1; i < after.size(); ++i) {
    if (before[i].value == after[i].value) continue;
    text += change.is_new ? fmt::format("{}: {} {}\n", subject, after[i].name, shown_text(after[i].value))
                          : fmt::format("{}: {} from {} to {}\n", subject, after[i].name,
                                        shown_text(before[i].value), shown_text(after[i].value));
  }
  const auto notes = notes_on(change, catalogue);
  return notes.empty() ? text : text + "\n" + notes;
}

std::string render_retirement(const queue::Action& action, const queue::QueueCatalogue& catalogue) {
  return fmt::format(
      "action {}: retire\n\nNew messages of it are refused. What is queued goes on, in queues: {}.\n",
      shown_text(action.name), takers_text(action.name, catalogue));
}

nlohmann::ordered_json action_json(const queue::Action& action, const queue::QueueCatalogue& catalogue) {
  ActionJson object{{"action", action.name}};
  object.update(properties_json_of(action));
  object["retired"] = action.is_retired;
  object["queues"] = queue::takers_of(action.name, catalogue);
  return object;
}

nlohmann::ordered_json action_list_json(const queue::QueueCatalogue& catalogue) {
  ActionJson object{{"actions", ActionJson::array()}};
  for (const auto& action : catalogue.actions.all())
    object["actions"].push_back(action_json(action, catalogue));
  return object;
}

nlohmann::ordered_json change_json(const queue::ActionChange& change,
                                   const queue::QueueCatalogue& catalogue) {
  const auto before = properties_json_of(change.before);
  const auto after = properties_json_of(change.after);
  ActionJson object{
      {"action", change.after.name}, {"create", change.is_new}, {"changes", ActionJson::array()}};
  for (const auto& [key, value] : after.items()) {
    if (key == "number" || value == before[key]) continue;
    object["changes"].push_back(
        {{"property", key}, {"before", change.is_new ? ActionJson(nullptr) : before[key]}, {"after", value}});
  }
  object["queues"] = queue::takers_of(change.after.name, catalogue);
  return object;
}

}  // namespace mailroom::cmd
