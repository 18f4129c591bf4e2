#include "doctor/subject.hpp"

namespace mailroom {

Findings check_pooler(Subject& subject) {
  auto& connection = *subject.connection;
  subject.pooler = find_pooler(connection, subject.settings->database_url, "mailroom doctor");
  if (subject.pooler == PoolerKind::none) return {fine("none between")};
  if (subject.pooler == PoolerKind::session) return {fine("one that gives each session its server process")};
  const auto direct = direct_conninfo(connection);
  std::vector<std::string> mend;
  if (!direct.empty()) mend.push_back("export MAILROOM_DATABASE_URL='" + direct + "'");
  return {failure(pooler_text(subject.pooler), std::move(mend), pooler_hint)};
}

}  // namespace mailroom
