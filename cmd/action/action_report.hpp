// The text and the JSON of actions and of their changes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "queue/action_change.hpp"

namespace mailroom::cmd {

std::string render_action_list(const queue::QueueCatalogue& catalogue, std::size_t width);
std::string render_action(const queue::Action& action, const queue::QueueCatalogue& catalogue,
                          std::size_t width);
std::string render_change(const queue::ActionChange& change, const queue::QueueCatalogue& catalogue);
std::string render_retirement(const queue::Action& action, const queue::QueueCatalogue& catalogue);

nlohmann::ordered_json action_list_json(const queue::QueueCatalogue& catalogue);
nlohmann::ordered_json action_json(const queue::Action& action, const queue::QueueCatalogue& catalogue);
nlohmann::ordered_json change_json(const queue::ActionChange& change, const queue::QueueCatalogue& catalogue);

}  // namespace mailroom::cmd
