#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mailroom::test {

/// A PostgreSQL server of its own, with fsync on, reached through a socket in a short folder under /tmp. As
/// root it runs as postgres or nobody. Stopped and removed at the end, and when stop_clusters_on_signals()
/// was called, by SIGINT and SIGTERM too.
class Cluster {
 public:
  struct Options {
    bool tcp = false;                     ///< listens on 127.0.0.1 as well
    std::vector<std::string> settings{};  ///< lines of postgresql.conf
    int wal_mb = 0;  ///< the write-ahead log lies on a file system of this size of its own
  };

  /// Made and started. Throws CannotBePlayed when no file system can be mounted, std::runtime_error with the
  /// server's messages when that fails.
  explicit Cluster(const Options& options);
  /// A streaming standby of `primary`, started.
  static Cluster standby_of(const Cluster& primary);
  Cluster(Cluster&& other) noexcept;
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  Cluster& operator=(Cluster&&) = delete;

  void start();
  /// `mode` is smart, fast or immediate.
  void stop(const std::string& mode);
  void promote();
  /// From a stop on it is a standby of nobody, which reads only, until promote().
  void demote();
  /// Starts it, unless it comes back by itself.
  void start_if_stopped();
  /// False when it has ended, or is not there yet.
  bool accepts() const;
  /// Takes all the room that the write-ahead log's own file system has left, or gives it back.
  void fill_wal() const;
  void free_wal() const;
  /// A program of the server's, as its user; its standard output and errors go into log().
  void run(const std::vector<std::string>& command) const;

  std::string host() const { return folder_; }
  int port() const { return port_; }
  std::string conninfo(const std::string& database) const;
  std::string log() const;
  /// A path in its folder, which the server's user can write to.
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  struct Empty {};
  explicit Cluster(Empty);

  std::string data() const { return folder_ / "data"; }
  void mount_wal(int megabytes) const;

  std::filesystem::path folder_;
  int port_ = 5432;
};

/// The folder that holds initdb.
std::string server_binaries();

/// So that nobody who interrupts the harness is left with its servers.
void stop_clusters_on_signals();

}  // namespace mailroom::test
