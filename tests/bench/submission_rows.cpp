// How fast mails are taken by SMTP, each flushed before its 250, and over HTTP before its 200, beside a
// Postfix that takes and keeps them.

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "bench/databases.hpp"
#include "bench/http_source.hpp"
#include "bench/row.hpp"
#include "support/test_relay.hpp"

namespace mailroom::bench {
namespace {

constexpr const char* bench_database = "submission";
constexpr const char* bench_role = "bench_shop";
constexpr const char* key_file = "submission.key";

/// What clients send.
struct Submitting {
  int sessions;
  int bytes;
  std::int64_t mails;  ///< a run, before scaling
  bool is_http = false;
};

Process::Setup source(const Submitting& submitting, std::int64_t mails, const std::string& address) {
  return {.command = {"/usr/sbin/smtp-source", "-d", "-s", std::to_string(submitting.sessions), "-m",
                      std::to_string(mails), "-l", std::to_string(submitting.bytes), "-f", "shop@app.example",
                      "-t", "ada@bench.example", address}};
}

void make_submission_database(Stage& stage) {
  stage.once(bench_database, [&] {
    make_live_database(stage, bench_database);
    Process(stage.mailroom(bench_database, {"init", "--roles"})).wait();
    stage.connect(bench_database)
        ->run(fmt::format("CREATE ROLE {0} LOGIN; GRANT EXECUTE ON FUNCTION mailroom_submit TO {0}; "
                          "GRANT mailroom_producer TO {0}; GRANT {0} TO mailroom_submission",
                          bench_role));
    auto create_key = stage.mailroom(bench_database, {"key", "create", bench_role});
    create_key.output = stage.path(key_file);
    Process(std::move(create_key)).wait();
  });
}

struct ServerCounts {
  std::int64_t flushes = 0;
  std::int64_t transactions = 0;
};

ServerCounts counts_of(Stage& stage) {
  const auto connection = stage.connect(bench_database);
  const bool is_18 =
      connection->run("SELECT current_setting('server_version_num')::int >= 180000").value<bool>();
  const auto* const flushes = is_18 ? "(SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal')"
                                    : "(SELECT wal_sync FROM pg_stat_wal)";
  const auto row =
      connection->run(fmt::format("SELECT {} AS flushes, xact_commit AS transactions FROM pg_stat_database "
                                  "WHERE datname = current_database()",
                                  flushes))[0];
  return {.flushes = row.number("flushes"), .transactions = row.number("transactions")};
}

/// A `mailroom submission` that takes mails by SMTP, without a login, and over HTTP.
class Door {
 public:
  explicit Door(Stage& stage) : port_(test::free_port()), http_(test::free_port()) {
    auto setup =
        stage.mailroom(bench_database, {"submission", "-q", "--listen", address() + "=" + bench_role});
    setup.environment["MAILROOM_SUBMISSION_HTTP"] = fmt::format("127.0.0.1:{}", http_);
    setup.errors = stage.path("submission.log");
    process_.emplace(std::move(setup));
    // Until it listens; the session of the role is there too then.
    const Submitting first{.sessions = 1, .bytes = 2048, .mails = 1};
    for (int i = 0; i < 100; ++i) {
      try {
        Process(source(first, 1, address())).wait();
        return;
      } catch (const std::runtime_error&) {
        usleep(50'000);
      }
    }
    throw std::runtime_error("mailroom submission takes no mail");
  }

  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  int http() const { return http_; }
  Cost stop() {
    process_->signal(SIGTERM);
    return process_->wait();
  }

 private:
  int port_;
  int http_;
  std::optional<Process> process_;
};

/// Submits `mails`, and returns the seconds that it took.
double submit(Stage& stage, const Submitting& submitting, std::int64_t mails, const Door& door) {
  if (!submitting.is_http) return Process(source(submitting, mails, door.address())).wait().seconds;
  std::string key;
  std::ifstream file(stage.path(key_file));
  for (std::string word; file >> word;)
    key = word;
  const auto begun_at = std::chrono::steady_clock::now();
  post_mails({.port = door.http(),
              .key = key,
              .connections = submitting.sessions,
              .mails = mails,
              .bytes = submitting.bytes});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_at).count();
}

Figures measure_door(Stage& stage, const Submitting& submitting) {
  const auto connection = stage.connect(bench_database);
  connection->run("TRUNCATE mailroom_messages, tokens");
  connection->run("CHECKPOINT");
  const auto mails = stage.scaled(submitting.mails);
  const auto server_before = stage.ended_cpu_seconds();
  Door door(stage);
  const auto before = counts_of(stage);
  const auto seconds = submit(stage, submitting, mails, door);
  const auto of_door = door.stop();
  const auto stored = connection->run("SELECT count(*) AS n FROM mailroom_messages")[0].number("n");
  if (stored != mails + 1)
    throw std::runtime_error(fmt::format("{} of {} mails were stored", stored - 1, mails));
  const auto cpu = of_door.cpu_seconds + stage.ended_cpu_seconds() - server_before;
  const auto after = counts_of(stage);
  const auto a_mail = [&](double count) { return count / static_cast<double>(mails); };
  return {{.value = static_cast<double>(mails) / seconds, .unit = "mails/s"},
          {.name = "cpu", .value = a_mail(cpu * 1e6), .unit = "us/mail"},
          {.name = "flushes",
           .value = a_mail(static_cast<double>(after.flushes - before.flushes)),
           .unit = "/mail"},
          {.name = "transactions",
           .value = a_mail(static_cast<double>(after.transactions - before.transactions)),
           .unit = "/mail"}};
}

/// The server of scripts/with-postfix.
Figures measure_postfix(Stage& stage, const Submitting& submitting) {
  const std::string url = std::getenv("MAILROOM_TEST_RELAY");
  const auto mails = stage.scaled(submitting.mails);
  const auto cost = Process(source(submitting, mails, url.substr(url.rfind('/') + 1))).wait();
  return {{.value = static_cast<double>(mails) / cost.seconds, .unit = "mails/s"}};
}

std::vector<Submitting> all_submitting() {
  return {{.sessions = 1, .bytes = 2048, .mails = 2'000},
          {.sessions = 16, .bytes = 2048, .mails = 10'000},
          {.sessions = 64, .bytes = 2048, .mails = 20'000},
          {.sessions = 1, .bytes = 102'400, .mails = 300},
          {.sessions = 16, .bytes = 102'400, .mails = 1'500},
          {.sessions = 64, .bytes = 102'400, .mails = 1'500},
          {.sessions = 16, .bytes = 2048, .mails = 10'000, .is_http = true}};
}

std::string name_of(const Submitting& submitting) {
  return fmt::format("{}{}{}", submitting.sessions, submitting.bytes > 10'000 ? "/large" : "",
                     submitting.is_http ? "/http" : "");
}

std::string meaning_of(const Submitting& submitting) {
  return fmt::format("{}, {} session{}, mails of {} kB", submitting.is_http ? "POST /emails" : "smtp-source",
                     submitting.sessions, submitting.sessions == 1 ? "" : "s", submitting.bytes / 1024);
}

}  // namespace

std::vector<Row> submission_rows() {
  std::vector<Row> rows;
  for (const auto& each : all_submitting()) {
    rows.push_back({.name = "submission/" + name_of(each),
                    .meaning = meaning_of(each) + ", stored",
                    .prepare = make_submission_database,
                    .measure = [each](Stage& stage) { return measure_door(stage, each); }});
  }
  if (std::getenv("MAILROOM_TEST_RELAY") == nullptr) return rows;
  for (const auto& each : all_submitting()) {
    if (each.is_http) continue;
    rows.push_back({.name = "rivals/postfix/" + name_of(each),
                    .meaning = meaning_of(each) + ", kept in the queue of a Postfix",
                    .prepare = [](Stage&) {},
                    .measure = [each](Stage& stage) { return measure_postfix(stage, each); }});
  }
  return rows;
}

}  // namespace mailroom::bench
