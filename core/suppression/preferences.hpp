// Which topics the recipient of a mail gets, and what he changes by its links.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::suppression {

/// A topic that the recipient of a mail may choose.
struct TopicChoice {
  std::string topic{};
  std::string title{};
  std::string titles{};  ///< by locale: an object of JSON
  bool is_on = true;
  bool is_own = false;   ///< that of the mail
  std::string locale{};  ///< of the mail; empty for none
};

/// What a request by a link asks for.
struct PreferenceChange {
  std::int64_t token = 0;  ///< whose mail it is
  bool stops_own = false;  ///< the topic of the mail
  std::vector<std::string> on{};
  std::vector<std::string> off{};
  std::string source{};  ///< how it was asked for, for the record: `one_click`

  bool changes() const { return stops_own || !on.empty() || !off.empty(); }
};

/// Makes the change, and returns the choices as they are then, that of the mail first. Returns none for a
/// mail without a topic, and for one that is not known any more. When it returns, no attempt at a mail begins
/// that is of a topic which is off.
std::vector<TopicChoice> change_preferences(db::Connection& connection, const PreferenceChange& change);

}  // namespace mailroom::suppression
