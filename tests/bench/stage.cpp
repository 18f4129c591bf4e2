#include "bench/stage.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

/// Loading ends with a vacuum and a checkpoint, so that neither falls into a run by chance.
const std::vector<std::string> server_settings{
    "synchronous_commit = on", "shared_buffers = 2GB", "maintenance_work_mem = 512MB", "max_wal_size = 16GB",
    "checkpoint_timeout = 1h", "autovacuum = off",     "track_commit_timestamp = on"};

}  // namespace

const char* const bench_key = "cafebabecafebabecafebabecafebabecafebabecafebabecafebabecafebabe";

Stage::Stage(Options options)
    : options_(std::move(options)), cluster_({.tcp = false, .settings = server_settings}) {
  // Inside the cluster's directory, which the cluster always removes.
  std::filesystem::create_directory(cluster_.path("files"));
}

std::int64_t Stage::scaled(std::int64_t count, std::int64_t least) const {
  return std::max(least,
                  static_cast<std::int64_t>(std::llround(static_cast<double>(count) * options_.scale)));
}

double Stage::scaled_seconds(double seconds) const {
  return seconds * std::clamp(options_.scale, 0.2, 10.0);
}

std::unique_ptr<db::Connection> Stage::connect(const std::string& database) const {
  return std::make_unique<db::Connection>(conninfo(database), "bench");
}

void Stage::once(const std::string& what, const std::function<void()>& body) {
  if (done_.count(what) > 0) return;
  body();
  done_.insert(what);
}

void Stage::create_database(const std::string& name, const std::string& template_name) const {
  connect("postgres")->run("CREATE DATABASE " + name + " TEMPLATE " + template_name);
  // What every copy is until it is adopted. An empty database and the original's know no copies.
  const auto made = connect(name);
  if (!made->run("SELECT to_regclass('mailroom_home')")[0][0].is_null())
    made->run(
        "UPDATE mailroom_home SET database = (SELECT oid FROM pg_database WHERE datname = current_database())");
}

void Stage::drop_database(const std::string& name) const {
  connect("postgres")->run("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)");
}

void Stage::set(const std::string& setting, const std::string& value) const {
  const auto connection = connect("postgres");
  connection->run("ALTER SYSTEM SET " + setting + " = '" + value + "'");
  connection->run("SELECT pg_reload_conf()");
}

void Stage::slow_flushes(double milliseconds) const {
  // The server waits while it holds the lock of the flush, as a disk would let it wait.
  set("commit_siblings", "0");
  set("commit_delay", std::to_string(std::llround(milliseconds * 1000)));
}

double Stage::ended_cpu_seconds() const {
  const auto connection = connect("postgres");
  const auto have_ended = [&] {
    return connection
        ->run(
            "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name LIKE 'mailroom%' "
            "AND application_name NOT LIKE 'mailroom bench%'")
        .empty();
  };
  if (!test::eventually(have_ended)) throw std::runtime_error("a session does not end");
  // The server counts a process once it has waited for it, and one that has used much shared memory takes
  // long to end.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  pid_t server = 0;
  std::ifstream(cluster_.path("data/postmaster.pid")) >> server;
  std::ifstream file("/proc/" + std::to_string(server) + "/stat");
  std::string stat;
  std::getline(file, stat);
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
  // cutime and cstime are fields 16 and 17; the first word is field 3.
  return (std::stod(words.at(13)) + std::stod(words.at(14))) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Process::Setup Stage::mailroom(const std::string& database, std::vector<std::string> words) const {
  words.insert(words.begin(), options_.binary);
  return program(database, std::move(words));
}

Process::Setup Stage::program(const std::string& database, std::vector<std::string> words) const {
  return {.command = std::move(words),
          .environment = {{"PGHOST", cluster_.host()},
                          {"PGPORT", std::to_string(cluster_.port())},
                          {"PGUSER", "postgres"},
                          {"PGDATABASE", database},
                          {"MAILROOM_DATABASE_URL", conninfo(database)},
                          {"MAILROOM_SECRET_KEY", bench_key}},
          .directory = cluster_.path("files"),
          .errors = path("errors")};
}

}  // namespace mailroom::bench
