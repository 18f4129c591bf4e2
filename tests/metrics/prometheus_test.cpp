// A real Prometheus, which scripts/with-prometheus has started, scrapes consumers once a second.

#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <thread>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "fault/cluster.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/http_client.hpp"
#include "support/refusing_port.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::prometheus_test {
namespace {

using Json = nlohmann::json;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error("run it by scripts/with-prometheus");
  return value;
}

std::string url_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    encoded += std::isalnum(byte) != 0 ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return encoded;
}

Json ask_prometheus(const std::string& path) {
  const auto url = variable("MAILROOM_TEST_PROMETHEUS");
  const config::ListenAddress address{.host = "127.0.0.1", .port = std::stoi(url.substr(url.rfind(':') + 1))};
  const auto answer = http_ask(address, "GET /api/v1/" + path + " HTTP/1.0\r\n\r\n");
  INFO(path << ": " << answer.body);
  REQUIRE(answer.status == 200);
  return parse_json(answer.body).at("data");
}

/// The result of an expression: its series.
Json evaluated(const std::string& expression) {
  return ask_prometheus("query?query=" + url_encoded(expression)).at("result");
}

/// The sum of an expression; -1 without a series.
double sum_of(const std::string& expression) {
  const auto result = evaluated("sum(" + expression + ")");
  return result.empty() ? -1 : std::stod(result.at(0).at("value").at(1).get<std::string>());
}

void scrape_from(const std::vector<config::ListenAddress>& addresses) {
  auto targets = Json::array();
  for (const auto& address : addresses)
    targets.push_back(address.text());
  std::ofstream(variable("MAILROOM_TEST_TARGETS")) << Json::array({{{"targets", targets}}});
}

constexpr std::chrono::seconds long_patience{90};

/// How long sign-ups go on before, between and after the restarts: a third of MAILROOM_TEST_MINUTES, which
/// nobody has to set.
std::chrono::seconds phase() {
  const char* minutes = std::getenv("MAILROOM_TEST_MINUTES");
  return minutes == nullptr ? std::chrono::seconds(0) : std::chrono::seconds(20 * std::stoi(minutes));
}

/// Tokens in all lines, also repeated ones.
std::int64_t emissions(const TestCollector& collector) {
  std::int64_t total = 0;
  for (const auto& [id, times] : emitted_ids(collector.output()))
    total += times;
  return total;
}

/// Inserts accounts in small transactions until it ends, and counts those that were committed.
class Signups {
 public:
  explicit Signups(std::string conninfo) : conninfo_(std::move(conninfo)), thread_([this] { work(); }) {}
  ~Signups() { end(); }

  int end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
    return committed_;
  }

 private:
  void work() {
    for (int n = 0; !ended_; ++n) {
      try {
        db::Connection connection(conninfo_, "signups");
        for (; !ended_; ++n) {
          insert_accounts(connection, 5, fmt::format("u{}x", n));
          committed_ += 5;
          if (phase().count() > 0) std::this_thread::sleep_for(Milliseconds(50));
        }
      } catch (const Error&) {
        // The server restarts. It may have committed the last accounts, so their names are not used again.
        std::this_thread::sleep_for(Milliseconds(100));
      }
    }
  }

  std::string conninfo_;
  std::atomic<bool> ended_ = false;
  std::atomic<int> committed_ = 0;
  std::thread thread_;
};

/// The expressions of a dashboard.
std::vector<std::string> expressions_of(const Json& dashboard) {
  std::vector<std::string> expressions;
  for (const auto& panel : dashboard.at("panels")) {
    for (const auto& target : panel.at("targets")) {
      auto expression = target.at("expr").get<std::string>();
      expression = Pattern("\\$__rate_interval").replaced(expression, "1m");
      expressions.push_back(Pattern("\\$queue").replaced(expression, ".*"));
    }
  }
  return expressions;
}

}  // namespace

TEST_CASE("what Prometheus sums up is what was emitted, through restarts of the database") {
  Cluster cluster(Cluster::Options{});
  const auto conninfo = cluster.conninfo("postgres");
  {
    db::Connection connection(conninfo, "test");
    migrate(connection);
  }
  TestCollector collector(conninfo,
                          {"--metrics", "127.0.0.1:0", "--format", "jsonl", "--batch-timeout", "50ms"});
  scrape_from({metrics_address([&] { return collector.log(); })});
  Signups signups(conninfo);
  for (const auto* mode : {"fast", "immediate"}) {
    std::this_thread::sleep_for(phase());
    const auto before = emissions(collector);
    REQUIRE(eventually([&] { return emissions(collector) > before + 200; }, long_patience));
    cluster.stop(mode);
    REQUIRE(eventually([&] { return sum_of("mailroom_session_up") == 0; }, long_patience));
    cluster.start();
  }
  std::this_thread::sleep_for(phase());
  const auto before = emissions(collector);
  REQUIRE(eventually([&] { return emissions(collector) > before + 200; }, long_patience));
  const auto committed = signups.end();
  db::Connection connection(conninfo, "test");
  const auto tokens = value<std::int64_t>(connection, "SELECT count(*) FROM tokens");
  CHECK(tokens >= committed);
  REQUIRE(
      eventually([&] { return emitted_ids(collector.output()).size() == static_cast<std::size_t>(tokens); },
                 long_patience));
  const auto emitted = static_cast<double>(emissions(collector));
  INFO(collector.log());
  REQUIRE(eventually([&] { return sum_of(R"(mailroom_tokens_total{outcome="emitted"})") == emitted; },
                     long_patience));
  CHECK(sum_of("mailroom_emission_delay_seconds_count") == emitted);
  CHECK(sum_of("mailroom_reconnects_total") >= 2);
  CHECK(sum_of("mailroom_session_up") == 1);
  CHECK(sum_of("mailroom_batches_total") == sum_of("mailroom_batch_tokens_count"));
  CHECK(collector.stop() == 0);
  CHECK(static_cast<double>(emissions(collector)) == emitted);
}

TEST_CASE("each expression of the dashboard has a value, and each alert can be evaluated") {
  const TestDatabase database;
  const auto connection = database.connect();
  const auto open = database.connect();
  const auto mailroom = [&](std::vector<std::string> words) {
    words.insert(words.begin(), mailroom_binary);
    const auto run = run_to_end(words, {{"MAILROOM_DATABASE_URL", database.conninfo()}});
    INFO(run.errors);
    REQUIRE(run.status == 0);
  };
  mailroom({"queue", "create", "mails", "--copy", "--rate", "1000/s", "--yes"});
  mailroom({"queue", "create", "paused", "--copy", "--yes"});
  mailroom({"queue", "pause", "paused", "--yes"});
  connection->run(
      "INSERT INTO mailroom_sinks VALUES ('relay.example:587', 1, now(), now(), now() + interval '1 h', 'down')");
  TestCollector collector(database,
                          {"--metrics", "127.0.0.1:0", "--queue", "mailroom,paused", "--batch-limit", "2"});
  const TestRelay relay;
  // With traces Prometheus asks for OpenMetrics, and gets it.
  const RefusingPort nobody;
  TestSender sender(database.conninfo(), relay.url(), {"--metrics", "127.0.0.1:0", "--queue", "mails"},
                    {{"MAILROOM_TRACE_ENDPOINT", "http://127.0.0.1:" + std::to_string(nobody.port())}});
  scrape_from(
      {metrics_address([&] { return collector.log(); }), metrics_address([&] { return sender.log(); })});
  REQUIRE(eventually([&] { return evaluated("mailroom_session_up == 1").size() == 2; }, long_patience));
  open->run("BEGIN");
  open->run("INSERT INTO accounts (email, login) VALUES ('open@mail.example', 'open')");
  int n = 0;
  const auto dashboard =
      parse_json(read_file(source_directory + "/examples/prometheus/mailroom-dashboard.json"));
  const auto expressions = expressions_of(dashboard);
  CHECK(expressions.size() > 20);
  for (const auto& expression : expressions) {
    INFO(expression);
    CHECK(eventually(
        [&] {
          insert_accounts(*connection, 2, fmt::format("n{}x", n++));
          return !evaluated(expression).empty();
        },
        long_patience));
  }
  // The metrics of a timer come from a file that it writes.
  const auto nightly = run_to_end({mailroom_binary, "reconcile", "-o", "prometheus"},
                                  {{"MAILROOM_DATABASE_URL", database.conninfo()}})
                           .output;
  const auto answer = ask_prometheus("rules");
  for (const auto& group : answer.at("groups")) {
    CHECK(group.at("rules").size() > 9);
    for (const auto& rule : group.at("rules")) {
      INFO(plain_json(rule));
      CHECK(rule.at("health") == "ok");
      // A metric that is misspelt has no series.
      const auto text = rule.at("query").get<std::string>();
      const Pattern name("mailroom_[a-z_]+|up\\b");
      for (const auto& match : name.all(text))
        CHECK((!evaluated(match[0]).empty() || nightly.find("\n" + match[0]) != std::string::npos));
    }
  }
  open->run("ROLLBACK");
}

}  // namespace mailroom::test::prometheus_test
