// The functions of migrations/functions/topics.sql do the work: this role reads no table.

#include "suppression/preferences.hpp"

#include "db/values.hpp"

namespace mailroom::suppression {
namespace {

std::vector<TopicChoice> read_preferences(db::Connection& connection, std::int64_t token) {
  std::vector<TopicChoice> choices;
  for (const auto& row : connection.run(
           "SELECT topic, title, titles, is_on, is_own, locale FROM mailroom_preferences($1)", token)) {
    choices.push_back({.topic = row.text("topic"),
                       .title = row.text("title"),
                       .titles = row.text("titles"),
                       .is_on = row.flag("is_on"),
                       .is_own = row.flag("is_own"),
                       .locale = row.text("locale")});
  }
  return choices;
}

}  // namespace

std::vector<TopicChoice> change_preferences(db::Connection& connection, const PreferenceChange& change) {
  auto choices = read_preferences(connection, change.token);
  if (choices.empty() || !change.changes()) return choices;
  auto off = change.off;
  if (change.stops_own) off.push_back(choices.front().topic);
  connection.run("SELECT mailroom_prefer($1, $2::text[], $3::text[], $4)", change.token,
                 db::quoted_array_text(change.on), db::quoted_array_text(off), change.source);
  return read_preferences(connection, change.token);
}

}  // namespace mailroom::suppression
