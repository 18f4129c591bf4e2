// `mailroom reconcile` on a streaming standby, where nothing can be written.

#include "fault/cluster.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::reconcile_standby_test {

TEST_CASE("reconcile accounts for every token on a standby, and compares with what was written",
          "[reconcile]") {
  Cluster primary(Cluster::Options{});
  const auto here = primary.conninfo("postgres");
  db::Connection connection(here, "test");
  migrate(connection);
  insert_accounts(connection, 5);
  const auto standby = Cluster::standby_of(primary);
  const auto reconcile = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {mailroom_binary, "reconcile", "--list"});
    return run_to_end(options, {{"MAILROOM_DATABASE_URL", standby.conninfo("postgres")},
                                {"MAILROOM_SECRET_KEY", test_key}});
  };
  TestCollector collector(here, {"--once", "--batch-limit", "2"});
  REQUIRE(collector.process().wait() == 0);
  FinishedRun run;
  const auto says = [&](const std::string& text, const std::vector<std::string>& options = {}) {
    return eventually([&] { return (run = reconcile(options)).output.find(text) != std::string::npos; });
  };
  CHECK(says("5  emitted"));
  CHECK(run.status == 0);
  CHECK(says("5 tokens in 3 lines", {"--against", collector.output_path()}));
  INFO(run.output << run.errors);
  CHECK(run.status == 0);

  connection.run("DELETE FROM mailroom_batches WHERE id = 2");
  CHECK(says("unexplained"));
  CHECK(run.status == 8);
  CHECK(run.errors.find("read-only") == std::string::npos);
}

}  // namespace mailroom::test::reconcile_standby_test
