// The text and the JSON of queues and of the budgets that they share.

#include "cmd/queue/queue_report.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

std::string allowance_text(const queue::Budget& budget) {
  if (const auto left = budget.left(); left > 0) return fmt::format("{} now", counted(left, "token"));
  return fmt::format("the next in {}", format_duration(budget.wait_for(1)));
}

std::string pause_text(const std::optional<queue::QueuePause>& pause) {
  if (!pause) return "no";
  return fmt::format("since {} by {}{}{}", moment_text(pause->since), shown_text(pause->actor),
                     pause->reason.empty() ? "" : ": ", shown_text(pause->reason));
}

std::vector<std::string> all_names(const queue::Actions& known) {
  std::vector<std::string> names;
  for (const auto& action : known.all())
    names.push_back(action.name);
  return names;
}

Json rate_json(const std::optional<queue::PacedRate>& paced) {
  if (!paced) return nullptr;
  return {{"rate", config::format_rate(paced->rate)}, {"burst", paced->burst}};
}

Json budget_json(const queue::Budget& budget, const queue::QueueCatalogue& catalogue) {
  return {{"name", budget.name},
          {"rate", config::format_rate(budget.paced.rate)},
          {"burst", budget.paced.burst},
          {"left", budget.left()},
          {"next_in_seconds", static_cast<double>(budget.wait_for(1).count()) / 1000},
          {"queues", catalogue.sharers_of(budget.name)}};
}

}  // namespace

std::string pending_text(const ListedQueue& listed) {
  return (listed.is_estimate ? "about " : "") + with_thousands(listed.pending);
}

std::string render_queue_list(const std::vector<ListedQueue>& queues, const queue::QueueCatalogue& catalogue,
                              std::size_t width) {
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"queue"},
                   {"actions"},
                   {"priority", right},
                   {"rate"},
                   {"budget"},
                   {"paused"},
                   {"cursor", right},
                   {"pending", right}});
  for (const auto& listed : queues) {
    const auto texts = queue::property_texts(listed.queue.properties);
    table.add({shown_text(listed.queue.name), texts[0].value, texts[1].value, texts[2].value,
               shown_text(texts[3].value), listed.queue.pause ? "yes" : "no",
               with_thousands(listed.queue.cursor), pending_text(listed)});
  }
  auto text = table.render(width);
  TextTable budgets({{"budget"}, {"rate"}, {"may go"}, {"queues"}});
  for (const auto& name : catalogue.shared_budgets()) {
    const auto& budget = *catalogue.find_budget(name);
    const auto sharers = catalogue.sharers_of(name);
    budgets.add({shown_text(name), queue::paced_text(budget.paced), allowance_text(budget),
                 sharers.empty() ? "none" : shown_text(joined(sharers, ", "))});
  }
  if (!budgets.empty()) text += "\n" + budgets.render(width);
  return text + untaken_note(catalogue.queues, catalogue.actions);
}

std::string render_queue(const ListedQueue& listed, const queue::QueueCatalogue& catalogue,
                         std::size_t width) {
  TextTable table({{""}, {""}});
  table.add({"queue", shown_text(listed.queue.name)});
  for (const auto& property : queue::property_texts(listed.queue.properties))
    table.add({property.name, shown_text(property.value)});
  table.add({"paused", pause_text(listed.queue.pause)});
  table.add({"cursor", fmt::format("{}, of {}", with_thousands(listed.queue.cursor),
                                   with_thousands(catalogue.newest))});
  table.add({"pending", pending_text(listed)});
  for (const auto& budget : listed.queue.budgets) {
    table.add({budget.name == listed.queue.name ? "rate allows" : "budget allows",
               fmt::format("{} ({})", allowance_text(budget), queue::paced_text(budget.paced))});
  }
  return table.render(width);
}

nlohmann::ordered_json queue_json(const ListedQueue& listed, const queue::QueueCatalogue& catalogue) {
  const auto& queue = listed.queue;
  const auto& properties = queue.properties;
  Json object{{"name", queue.name},
              {"actions", properties.actions.empty() ? all_names(catalogue.actions) : properties.actions},
              {"priority", properties.priority},
              {"rate", rate_json(properties.rate)},
              {"budget", text_or_null<Json>(properties.budget)},
              {"batch_limit", text_or_null<Json>(properties.batch_limit)},
              {"batch_timeout", text_or_null<Json>(properties.batch_timeout)},
              {"paused", nullptr},
              {"cursor", queue.cursor},
              {"pending", {{"tokens", listed.pending}, {"estimated", listed.is_estimate}}},
              {"budgets", Json::array()}};
  if (const auto& pause = queue.pause) {
    object["paused"] = {{"since", moment_json<Json>(pause->since)},
                        {"actor", pause->actor},
                        {"reason", text_or_null<Json>(pause->reason)}};
  }
  for (const auto& budget : queue.budgets)
    object["budgets"].push_back(budget_json(budget, catalogue));
  return object;
}

nlohmann::ordered_json queue_list_json(const std::vector<ListedQueue>& queues,
                                       const queue::QueueCatalogue& catalogue) {
  Json object{{"queues", Json::array()},
              {"budgets", Json::array()},
              {"untaken_actions", queue::untaken_actions(catalogue.queues, catalogue.actions)}};
  for (const auto& listed : queues)
    object["queues"].push_back(queue_json(listed, catalogue));
  for (const auto& name : catalogue.shared_budgets())
    object["budgets"].push_back(budget_json(*catalogue.find_budget(name), catalogue));
  return object;
}

std::string untaken_note(const std::vector<queue::QueueRecord>& queues, const queue::Actions& known) {
  std::string text;
  for (const auto& action : queue::untaken_actions(queues, known)) {
    text += fmt::format("warning: no queue takes {} tokens: nobody is mailed for them\n",
                        queue::short_action_name(action));
  }
  return text;
}

}  // namespace mailroom::cmd
