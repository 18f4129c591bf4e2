// The output of the commands of queue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "queue/queue_plan.hpp"

namespace mailroom::cmd {

/// A queue with what waits in it.
struct ListedQueue {
  queue::QueueRecord queue;
  std::int64_t pending = 0;
  bool is_estimate = false;
};

/// `1,234`, or `about 1,234`
std::string pending_text(const ListedQueue& listed);

std::string render_queue_list(const std::vector<ListedQueue>& queues, const queue::QueueCatalogue& catalogue,
                              std::size_t width);
nlohmann::ordered_json queue_list_json(const std::vector<ListedQueue>& queues,
                                       const queue::QueueCatalogue& catalogue);

std::string render_queue(const ListedQueue& listed, const queue::QueueCatalogue& catalogue,
                         std::size_t width);
nlohmann::ordered_json queue_json(const ListedQueue& listed, const queue::QueueCatalogue& catalogue);

/// One line for each change, then what the plan means for the tokens that exist.
std::string render_plan(const queue::QueuePlan& plan, const std::vector<queue::QueueEffect>& effects,
                        const queue::QueueCatalogue& catalogue);
nlohmann::ordered_json plan_json(const queue::QueuePlan& plan, const std::vector<queue::QueueEffect>& effects,
                                 const queue::QueueCatalogue& catalogue);

/// A warning for each action that none of `queues` takes.
std::string untaken_note(const std::vector<queue::QueueRecord>& queues, const queue::Actions& actions);

}  // namespace mailroom::cmd
