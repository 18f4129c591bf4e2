#include "doctor/subject.hpp"

namespace mailroom {

Findings check_pooler(Subject& subject) {
  auto& connection = *subject.connection;
  subject.pooler = find_pooler(connection, subject.settings->database_url, "mailroom doctor");
  if (subject.pooler == PoolerKind::none) return {fine("none")};
  if (subject.pooler == PoolerKind::session) return {fine("a pooler in session mode")};
  const auto direct = direct_conninfo(connection);
  std::vector<std::string> fix;
  if (!direct.empty()) fix.push_back("export MAILROOM_DATABASE_URL='" + direct + "'");
  return {failure(pooler_text(subject.pooler), std::move(fix), pooler_hint)};
}

}  // namespace mailroom
