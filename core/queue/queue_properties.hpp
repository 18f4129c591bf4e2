// What an operator can define of a queue, as the database keeps it and as people read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/rate.hpp"

namespace mailroom::queue {

/// A rate, and how many tokens may be taken at once.
struct PacedRate {
  /// A tenth of a second's tokens, at least one: a limit per second refuses what comes at once.
  static int default_burst(const config::Rate& rate);

  config::Rate rate{};
  int burst = 1;

  bool operator==(const PacedRate&) const = default;
};

/// `14/s, burst 10`
std::string paced_text(const PacedRate& paced);

/// What makes a queue different from others. A queue without a definition has the defaults.
struct QueueProperties {
  std::vector<std::string>
      actions{};  ///< those that it takes, as the database names them, sorted; empty for all
  int priority = 0;
  std::optional<PacedRate> rate{};
  std::string budget{};         ///< the rate that it shares with other queues; empty for none
  std::string batch_limit{};    ///< as in the configuration; empty: not defined
  std::string batch_timeout{};  ///< the same

  bool operator==(const QueueProperties&) const = default;
  bool takes(const std::string& action) const;
};

/// Reads what mailroom_queue_definition() returns; ignores members of other types than it returns.
QueueProperties properties_of(const std::string& json);
/// What mailroom_write_queue() reads.
std::string properties_json(const QueueProperties& properties);
/// Reads a rate as mailroom_set_budget() records it; nullopt for another text.
std::optional<PacedRate> paced_of(const std::string& json);
std::string paced_json(const PacedRate& paced);

/// `none` for an empty text.
std::string text_or_none(const std::string& text);

/// A property as `queue show` names it, and its value: `all` or `none` if it is not set.
struct PropertyText {
  std::string name;
  std::string value;
};
/// All of them, in one order.
std::vector<PropertyText> property_texts(const QueueProperties& properties);

struct PropertyChange {
  std::string name;
  std::string before;
  std::string after;
};
/// Those properties whose texts differ.
std::vector<PropertyChange> changes_between(const QueueProperties& before, const QueueProperties& after);

}  // namespace mailroom::queue
