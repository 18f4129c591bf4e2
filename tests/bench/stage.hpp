#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/process.hpp"
#include "db/connection.hpp"
#include "fault/cluster.hpp"

namespace mailroom::bench {

/// The environment of the rows: a server with fsync on, a directory for files, the program, and the scale.
class Stage {
 public:
  struct Options {
    std::string binary;
    double scale = 1;
  };

  explicit Stage(Options options);

  test::Cluster& cluster() { return cluster_; }
  const std::string& binary() const { return options_.binary; }
  /// `count` times the scale, but at least `least`.
  std::int64_t scaled(std::int64_t count, std::int64_t least = 1) const;
  /// A measuring time multiplied by the scale, but at least a fifth of it.
  double scaled_seconds(double seconds) const;
  /// The path of a file that rows use.
  std::string path(const std::string& name) const { return cluster_.path("files/" + name); }

  std::string conninfo(const std::string& database) const { return cluster_.conninfo(database); }
  std::unique_ptr<db::Connection> connect(const std::string& database) const;
  /// Runs `body` once per `what` in the life of this stage.
  void once(const std::string& what, const std::function<void()>& body);
  void create_database(const std::string& name, const std::string& template_name) const;
  void drop_database(const std::string& name) const;
  /// Changes a setting of the server, at once.
  void set(const std::string& setting, const std::string& value) const;
  /// Each flush of the WAL takes `milliseconds` longer from now on. Who commits meanwhile shares the next
  /// one.
  void slow_flushes(double milliseconds) const;
  /// User and system time of all server processes that have ended so far, in steps of 10 ms. Waits until the
  /// sessions of measured programs have ended.
  double ended_cpu_seconds() const;

  /// `mailroom WORDS…` on `database`, with a key; files as in Process::Setup.
  Process::Setup mailroom(const std::string& database, std::vector<std::string> words) const;
  /// Another program on `database`.
  Process::Setup program(const std::string& database, std::vector<std::string> words) const;

 private:
  Options options_;
  test::Cluster cluster_;
  std::set<std::string> done_;
};

extern const char* const bench_key;  ///< 64 hexadecimal digits

}  // namespace mailroom::bench
