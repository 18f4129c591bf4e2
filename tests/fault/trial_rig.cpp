#include "fault/trial_rig.hpp"

#include <stdexcept>
#include <thread>

namespace mailroom::test {
namespace {

/// Creates a database with the schema; returns its new name.
std::string make_database(const Cluster& cluster) {
  static int count = 0;
  const auto name = "fault_" + std::to_string(++count);
  db::Connection(cluster.conninfo("postgres"), "harness").run("CREATE DATABASE " + name);
  db::Connection connection(cluster.conninfo(name), "harness");
  migrate(connection);
  return name;
}

}  // namespace

TrialRig::TrialRig(const Cluster& cluster, const Plan& plan)
    : database_(make_database(cluster)),
      conninfo_(cluster.conninfo(database_)),
      admin_(cluster.conninfo("postgres")),
      seed_(plan.seed),
      random_(plan.seed) {
  if (plan.sabotage != nullptr) break_protocol(*connect(), *plan.sabotage);
}

TrialRig::~TrialRig() {
  end_writers();
  try {
    // After a crash the server reads every file of every database at the start.
    db::Connection(admin_, "harness").run("DROP DATABASE IF EXISTS " + database_ + " WITH (FORCE)");
  } catch (const Error&) {
    // The server has stopped, or is stopping.
  }
}

void TrialRig::pause(int from_ms, int to_ms) {
  std::this_thread::sleep_for(Milliseconds(draw(from_ms, to_ms)));
}

std::unique_ptr<db::Connection> TrialRig::connect() const {
  std::unique_ptr<db::Connection> connection;
  const auto reached = [&] {
    try {
      connection = std::make_unique<db::Connection>(conninfo_, "harness");
    } catch (const db::ConnectionLost&) {
      return false;
    }
    return true;
  };
  if (!eventually(reached)) throw std::runtime_error("the server does not come back");
  return connection;
}

void TrialRig::expect(bool met, const std::string& what) {
  if (!met) outcome_.problems.push_back("not so: " + what);
}

void TrialRig::start_writers(const std::string& conninfo, int writers, const WriteLoad::Options& load) {
  if (writers > 0) load_ = std::make_unique<WriteLoad>(conninfo, writers, seed_ * 1000, load);
}

void TrialRig::start_producers(int producers) {
  if (producers > 0) messages_ = std::make_unique<MessageLoad>(conninfo_, producers, seed_ * 1000);
}

void TrialRig::end_writers() {
  load_.reset();
  if (messages_) messages_->stop();
}

void TrialRig::note_logs(const std::vector<std::string>& logs) {
  constexpr std::size_t length = 600;
  if (outcome_.problems.empty()) return;
  for (const auto& log : logs)
    note("log: " + log.substr(log.size() > length ? log.size() - length : 0));
}

}  // namespace mailroom::test
