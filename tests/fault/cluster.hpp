#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mailroom::test {

/// A TCP port of 127.0.0.1 that nothing listens on now.
int free_port();

/// A temporary PostgreSQL server with fsync on, reached through a socket in a short directory under /tmp.
/// As root it runs as postgres or nobody. The destructor stops and removes it; so do SIGINT and SIGTERM
/// after stop_clusters_on_signals().
class Cluster {
 public:
  struct Options {
    bool tcp = false;                     ///< also listen on 127.0.0.1
    std::vector<std::string> settings{};  ///< lines of postgresql.conf
    int wal_mb = 0;                       ///< puts the write-ahead log on its own file system of this size
  };

  /// Creates and starts the server. Throws CannotBePlayed when no file system can be mounted,
  /// std::runtime_error with the server's messages when the server does not start.
  explicit Cluster(const Options& options);
  /// Creates and starts a streaming standby of `primary`.
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
  /// Restarts the server as a read-only standby without a primary, until promote().
  void demote();
  /// Starts the server unless it restarts by itself.
  void start_if_stopped();
  /// True if the server accepts connections.
  bool accepts() const;
  /// Fills the file system of the write-ahead log, or frees that space.
  void fill_wal() const;
  void free_wal() const;
  /// Runs a server program as the server's user; its standard output and errors go to log().
  void run(const std::vector<std::string>& command) const;

  std::string host() const { return directory_; }
  int port() const { return port_; }
  std::string conninfo(const std::string& database) const;
  std::string log() const;
  /// A path in the cluster's directory, which the server's user can write to.
  std::string path(const std::string& name) const { return directory_ / name; }

 private:
  struct Empty {};
  explicit Cluster(Empty);

  std::string data() const { return directory_ / "data"; }
  void mount_wal(int megabytes) const;

  std::filesystem::path directory_;
  int port_ = 5432;
};

/// The directory that holds initdb.
std::string server_binaries();

/// Makes SIGINT and SIGTERM stop and remove all servers of the harness.
void stop_clusters_on_signals();

}  // namespace mailroom::test
