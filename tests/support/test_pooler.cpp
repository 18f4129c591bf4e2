#include "support/test_pooler.hpp"

#include <cstdlib>
#include <filesystem>
#include <pwd.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace mailroom::test {
namespace {

std::string setting(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) throw std::runtime_error("run the test through scripts/with-postgres");
  return text;
}

/// The owner of the directory that contains the server's socket.
std::string owner_of_server() {
  struct stat directory {};
  const auto* owner = stat(setting("PGHOST").c_str(), &directory) == 0 ? getpwuid(directory.st_uid) : nullptr;
  if (owner == nullptr) throw std::runtime_error("the server's directory has no owner");
  return owner->pw_name;
}

}  // namespace

TestPooler::TestPooler(const TestDatabase& database, const std::string& mode, const std::string& settings)
    : database_(database.name()) {
  const auto file = directory_.write("pgbouncer.ini", configuration(database, mode) + settings);
  std::vector<std::string> command{"/usr/sbin/pgbouncer"};
  if (geteuid() == 0) {
    // PgBouncer refuses to run as root, and must create its socket in the directory.
    std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);
    command.insert(command.end(), {"-u", owner_of_server()});
  }
  command.push_back(file);
  const std::string log = directory_.path() / "log";
  process_ = std::make_unique<Subprocess>(command, std::map<std::string, std::string>{}, log, log);
  const auto answers = [this] {
    try {
      db::Connection(conninfo(), "test");
      return true;
    } catch (const db::ConnectionLost&) {
      return false;
    }
  };
  if (!eventually(answers)) throw std::runtime_error("PgBouncer did not start: " + this->log());
}

std::string TestPooler::conninfo() const {
  return "host=" + directory_.path().string() + " port=6432 dbname=" + database_;
}

std::string TestPooler::configuration(const TestDatabase& database, const std::string& mode) const {
  return "[databases]\n" + database.name() + " = host=" + setting("PGHOST") + " port=" + setting("PGPORT") +
         " user=" + setting("PGUSER") +
         "\n[pgbouncer]\nauth_type = any\nlisten_port = 6432\nlisten_addr =\n" +
         "unix_socket_dir = " + directory_.path().string() + "\npool_mode = " + mode + "\n";
}

}  // namespace mailroom::test
