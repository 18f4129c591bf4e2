// `mailroom tail` on a streaming standby, which has no notifications.

#include <csignal>
#include <fmt/format.h>

#include "base/json.hpp"
#include "fault/cluster.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_database.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::tail_standby_test {

TEST_CASE("a tail that follows a standby shows what the standby receives") {
  Cluster primary(Cluster::Options{});
  db::Connection connection(primary.conninfo("postgres"), "test");
  migrate(connection);
  insert_accounts(connection, 1, "past");
  const auto standby = Cluster::standby_of(primary);
  TemporaryDirectory directory;
  const std::string shown = directory.path() / "stdout";
  Subprocess tail({mailroom_binary, "tail", "-f", "-o", "json"},
                  {{"MAILROOM_DATABASE_URL", standby.conninfo("postgres")}}, shown,
                  directory.path() / "stderr");
  const auto events = [&] {
    std::string text;
    for (const auto& line : lines_of(read_file(shown))) {
      const auto event = try_parse_json(line);
      if (!event.is_discarded())
        text += fmt::format("{} {}\n", event.value("event", ""), event.value("token", 0));
    }
    return text;
  };
  CHECK(eventually([&] { return events() == "created 1\n"; }));
  insert_accounts(connection, 1, "new");
  CHECK(eventually([&] { return events() == "created 1\ncreated 2\n"; }));
  connection.run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id = 2");
  CHECK(eventually([&] { return events() == "created 1\ncreated 2\nconsumed 2\n"; }));
  tail.signal(SIGTERM);
  CHECK(tail.wait() == 0);
  CHECK(read_file(directory.path() / "stderr").empty());
}

}  // namespace mailroom::test::tail_standby_test
