// The functions of migrations/functions/topics.sql refuse what cannot be a topic.

#include "suppression/topics.hpp"

#include <functional>

#include "base/error.hpp"
#include "base/json.hpp"
#include "db/errors.hpp"

namespace mailroom::suppression {
namespace {

void run(db::Connection& connection, const queue::OperationAuthor& author,
         const std::function<void(pqxx::work&)>& change) {
  try {
    connection.transact([&](pqxx::work& transaction) {
      queue::set_author(transaction, author);
      change(transaction);
    });
  } catch (const db::DatabaseError& error) {
    const auto kind = error.sqlstate().substr(0, 2);
    if (kind != "22" && kind != "23" && error.sqlstate() != "42704") throw;
    throw Error(ExitCode::usage, error.what(), error.hint());
  }
}

}  // namespace

std::vector<Topic> list_topics(db::Connection& connection) {
  std::vector<Topic> topics;
  for (const auto& row : connection.run(R"(
SELECT t.topic, t.title, t.titles, coalesce(t.profile, '') AS profile, t.retired_at IS NOT NULL AS is_retired,
  (SELECT count(*) FROM mailroom_suppressions s WHERE s.topic = t.topic) AS unsubscribed
FROM mailroom_topics t ORDER BY t.topic)")) {
    auto& topic = topics.emplace_back();
    topic.name = row.text("topic");
    topic.title = row.text("title");
    const auto titles = parse_json(row.text("titles"));
    for (const auto& [locale, title] : titles.items())
      topic.titles[locale] = title.get<std::string>();
    topic.profile = row.text("profile");
    topic.is_retired = row.flag("is_retired");
    topic.unsubscribed = row.number("unsubscribed");
  }
  return topics;
}

void create_topic(db::Connection& connection, const std::string& name, const TopicChange& topic,
                  const queue::OperationAuthor& author) {
  run(connection, author, [&](pqxx::work& transaction) {
    const auto profile = topic.profile.value_or("");
    db::Connection::execute(transaction, "SELECT mailroom_create_topic($1, $2, $3::jsonb, $4)", name,
                            topic.title, plain_json(nlohmann::json(topic.titles)),
                            profile.empty() ? std::nullopt : std::optional(profile));
  });
}

void change_topic(db::Connection& connection, const std::string& name, const TopicChange& change,
                  const queue::OperationAuthor& author) {
  run(connection, author, [&](pqxx::work& transaction) {
    auto changes = nlohmann::json::object();
    if (change.title) changes["title"] = *change.title;
    if (change.profile)
      changes["profile"] = change.profile->empty() ? nlohmann::json() : nlohmann::json(*change.profile);
    if (change.is_retired) changes["retired"] = *change.is_retired;
    if (!change.titles.empty()) {
      auto titles = nlohmann::json::object();
      const auto rows = db::Connection::execute(
          transaction, "SELECT titles FROM mailroom_topics WHERE topic = $1 FOR UPDATE", name);
      if (!rows.empty()) titles = parse_json(rows[0].text("titles"));
      for (const auto& [locale, title] : change.titles) {
        if (title.empty()) {
          titles.erase(locale);
        } else {
          titles[locale] = title;
        }
      }
      changes["titles"] = titles;
    }
    db::Connection::execute(transaction, "SELECT mailroom_set_topic($1, $2::jsonb)", name,
                            plain_json(changes));
  });
}

}  // namespace mailroom::suppression
