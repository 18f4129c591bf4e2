#include "fault/cluster.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <netinet/in.h>
#include <pwd.h>
#include <random>
#include <sched.h>
#include <stdexcept>
#include <sys/mount.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "db/connection.hpp"
#include "fault/fault.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test {
namespace {

std::mutex running_lock;
std::vector<std::filesystem::path> running;  ///< the directories of all clusters
std::array<int, 2> interruptions{-1, -1};

const passwd* server_user() {
  const auto* user = getpwnam("postgres");
  return user != nullptr ? user : getpwnam("nobody");
}

/// PostgreSQL refuses to run as root.
std::vector<std::string> as_server_user(const std::filesystem::path& directory) {
  std::vector<std::string> words{"/usr/bin/env", "--chdir=" + directory.string(), "LC_ALL=C"};
  if (geteuid() != 0) return words;
  const auto* user = server_user();
  words.insert(words.end(), {"setpriv", "--reuid=" + std::to_string(user->pw_uid),
                             "--regid=" + std::to_string(user->pw_gid), "--clear-groups"});
  return words;
}

std::filesystem::path make_directory() {
  // A socket's path holds 107 bytes at most, and the server's user must reach it.
  std::string pattern = "/tmp/mailroom-fault.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
  if (geteuid() == 0 && chown(pattern.c_str(), server_user()->pw_uid, server_user()->pw_gid) != 0)
    throw std::runtime_error("cannot give away " + pattern);
  return pattern;
}

void remove_cluster(const std::filesystem::path& directory) {
  std::ifstream file(directory / "data" / "postmaster.pid");
  pid_t postmaster = 0;
  std::error_code ignored;
  // The pid may belong to another process by now.
  if (file >> postmaster && postmaster > 1 &&
      std::filesystem::read_symlink("/proc/" + std::to_string(postmaster) + "/cwd", ignored) ==
          directory / "data") {
    kill(postmaster, SIGQUIT);
    const auto gone = [&] { return kill(postmaster, 0) != 0; };
    if (!eventually(gone, std::chrono::seconds(10))) kill(postmaster, SIGKILL);
  }
  std::filesystem::remove_all(directory, ignored);
}

bool is_free(int port) {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool is_bound = bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(probe);
  return is_bound;
}

void note_interruption(int number) {
  const auto byte = static_cast<char>(number);
  // A full pipe already holds earlier signals.
  [[maybe_unused]] const auto written = write(interruptions[1], &byte, 1);
}

}  // namespace

int free_port() {
  // Below those that the kernel gives to clients: one of them could have it while its server restarts.
  static std::mt19937 random{std::random_device{}()};
  for (int tries = 0; tries < 1000; ++tries) {
    const int port = std::uniform_int_distribution<int>(10'000, 29'999)(random);
    if (is_free(port)) return port;
  }
  throw std::runtime_error("no port is free");
}

std::string server_binaries() {
  if (const char* directory = std::getenv("MAILROOM_PG_BINDIR")) return directory;
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", ignored)) {
    if (std::filesystem::exists(version.path() / "bin" / "initdb")) found.push_back(version.path() / "bin");
  }
  if (found.empty()) throw std::runtime_error("no initdb was found: set MAILROOM_PG_BINDIR to its directory");
  return *std::max_element(found.begin(), found.end());
}

void stop_clusters_on_signals() {
  if (pipe(interruptions.data()) != 0) throw std::runtime_error("no pipe");
  std::thread([] {
    char number = 0;
    if (read(interruptions[0], &number, 1) != 1) return;
    const std::lock_guard lock(running_lock);
    for (const auto& directory : running)
      remove_cluster(directory);
    _exit(128 + number);
  }).detach();
  std::signal(SIGINT, note_interruption);
  std::signal(SIGTERM, note_interruption);
}

Cluster::Cluster(Empty) : directory_(make_directory()) {
  const std::lock_guard lock(running_lock);
  running.push_back(directory_);
}

Cluster::Cluster(const Options& options) : Cluster(Empty{}) {
  std::vector<std::string> command{"initdb", "-D",   data(),       "-U",           "postgres",
                                   "-E",     "UTF8", "--locale=C", "--auth=trust", "--no-sync"};
  if (options.wal_mb > 0) {
    mount_wal(options.wal_mb);
    command.insert(command.end(), {"-X", path("wal/segments"), "--wal-segsize=1"});
  }
  run(command);
  if (options.tcp) port_ = free_port();
  std::ofstream file(data() + "/postgresql.conf", std::ios::app);
  file << "listen_addresses = '" << (options.tcp ? "127.0.0.1" : "") << "'\n"
       << "unix_socket_directories = '" << directory_.string() << "'\n"
       << "port = " << port_ << "\nmax_connections = 200\nmax_prepared_transactions = 50\nfsync = on\n"
       << "wal_level = replica\nmax_wal_senders = 4\n";
  for (const auto& line : options.settings)
    file << line << '\n';
  file.close();
  start();
}

Cluster Cluster::standby_of(const Cluster& primary) {
  Cluster standby{Empty{}};
  standby.port_ = primary.port_;
  standby.run({"pg_basebackup", "-h", primary.host(), "-p", std::to_string(primary.port_), "-U", "postgres",
               "-D", standby.data(), "-R", "-X", "stream", "-c", "fast"});
  std::ofstream file(standby.data() + "/postgresql.conf", std::ios::app);
  file << "listen_addresses = ''\nunix_socket_directories = '" << standby.host() << "'\n";
  file.close();
  standby.start();
  return standby;
}

Cluster::Cluster(Cluster&& other) noexcept : directory_(std::move(other.directory_)), port_(other.port_) {
  other.directory_.clear();
}

Cluster::~Cluster() {
  if (directory_.empty()) return;
  const std::lock_guard lock(running_lock);
  remove_cluster(directory_);
  running.erase(std::remove(running.begin(), running.end(), directory_), running.end());
}

void Cluster::mount_wal(int megabytes) const {
  const auto size = "size=" + std::to_string(megabytes) + "m";
  const auto place = path("wal");
  std::filesystem::create_directory(place);
  // In a namespace of this thread and its children, so that the kernel unmounts it with the last of them.
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", place.c_str(), "tmpfs", 0, size.c_str()) != 0)
    throw CannotBePlayed(std::string("no file system can be mounted: ") + std::strerror(errno));
  if (chown(place.c_str(), server_user()->pw_uid, server_user()->pw_gid) != 0)
    throw std::runtime_error("cannot give away " + place);
}

void Cluster::fill_wal() const {
  std::ofstream file(path("wal/ballast"), std::ios::binary);
  const std::string block(4096, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

void Cluster::free_wal() const {
  std::filesystem::remove(path("wal/ballast"));
}

void Cluster::run(const std::vector<std::string>& command) const {
  auto words = as_server_user(directory_);
  words.push_back(server_binaries() + "/" + command.at(0));
  words.insert(words.end(), command.begin() + 1, command.end());
  Subprocess process(words, {}, path("log"), path("log"));
  if (process.wait(std::chrono::seconds(300)) != 0)
    throw std::runtime_error(command[0] + " failed:\n" + log());
}

void Cluster::start() {
  run({"pg_ctl", "-D", data(), "-l", path("server.log"), "-w", "-t", "60", "start"});
}

void Cluster::stop(const std::string& mode) {
  run({"pg_ctl", "-D", data(), "-m", mode, "-w", "-t", "60", "stop"});
}

void Cluster::demote() {
  stop("fast");
  std::ofstream(data() + "/standby.signal").close();
  if (geteuid() == 0 &&
      chown((data() + "/standby.signal").c_str(), server_user()->pw_uid, server_user()->pw_gid) != 0)
    throw std::runtime_error("cannot give away standby.signal");
  start();
}

void Cluster::start_if_stopped() {
  const auto back = [&] {
    if (accepts()) return true;
    try {
      run({"pg_ctl", "-D", data(), "status"});
    } catch (const std::runtime_error&) {
      start();
    }
    return accepts();
  };
  if (!eventually(back)) throw std::runtime_error("the server does not come back:\n" + log());
}

bool Cluster::accepts() const {
  try {
    db::Connection(conninfo("postgres"), "harness");
  } catch (const db::ConnectionLost&) {
    return false;
  }
  return true;
}

void Cluster::promote() {
  run({"pg_ctl", "-D", data(), "-w", "-t", "60", "promote"});
}

std::string Cluster::conninfo(const std::string& database) const {
  return "host=" + host() + " port=" + std::to_string(port_) + " user=postgres dbname=" + database;
}

std::string Cluster::log() const {
  return read_file(path("log")) + read_file(path("server.log"));
}

}  // namespace mailroom::test
