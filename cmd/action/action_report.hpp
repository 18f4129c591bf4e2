// The text and the JSON of actions and of their changes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "queue/action_change.hpp"

namespace mailroom {

std::string render_action_list(const QueueCatalogue& catalogue, std::size_t width);
std::string render_action(const Action& action, const QueueCatalogue& catalogue, std::size_t width);
std::string render_change(const ActionChange& change, const QueueCatalogue& catalogue);
std::string render_retirement(const Action& action, const QueueCatalogue& catalogue);

nlohmann::ordered_json action_list_json(const QueueCatalogue& catalogue);
nlohmann::ordered_json action_json(const Action& action, const QueueCatalogue& catalogue);
nlohmann::ordered_json change_json(const ActionChange& change, const QueueCatalogue& catalogue);

}  // namespace mailroom
