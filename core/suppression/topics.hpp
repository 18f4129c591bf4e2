// The topics that people can unsubscribe from, for operators.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::suppression {

struct Topic {
  std::string name{};
  std::string title{};
  std::map<std::string, std::string> titles{};  ///< by locale
  std::string profile{};                        ///< empty: it is shown in all mails
  bool is_retired = false;
  std::int64_t unsubscribed = 0;  ///< addresses that get no mails of it
};

/// In the order of their names.
std::vector<Topic> list_topics(db::Connection& connection);

/// What changes of a topic; of a new one the title is needed.
struct TopicChange {
  std::optional<std::string> title{};
  std::map<std::string, std::string> titles{};  ///< an empty one is removed
  std::optional<std::string> profile{};         ///< empty for none
  std::optional<bool> is_retired{};
};

/// Throw Error(usage) with the server's words for what cannot be, and record the change.
void create_topic(db::Connection& connection, const std::string& name, const TopicChange& topic,
                  const queue::OperationAuthor& author);
void change_topic(db::Connection& connection, const std::string& name, const TopicChange& change,
                  const queue::OperationAuthor& author);

}  // namespace mailroom::suppression
