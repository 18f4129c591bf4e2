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

/// Where the rows are measured: a server with fsync on, a folder for files, the program, and the scale.
class Stage {
 public:
  struct Options {
    std::string binary;
    double scale = 1;
  };

  explicit Stage(Options options);

  test::Cluster& cluster() { return cluster_; }
  const std::string& binary() const { return options_.binary; }
  /// `count` times the scale, `least` at the least.
  std::int64_t scaled(std::int64_t count, std::int64_t least = 1) const;
  /// A measuring time, shortened with the scale, but never below a fifth.
  double scaled_seconds(double seconds) const;
  /// A file of the rows.
  std::string path(const std::string& name) const { return cluster_.path("files/" + name); }

  std::string conninfo(const std::string& database) const { return cluster_.conninfo(database); }
  std::unique_ptr<Connection> connect(const std::string& database) const;
  /// Does `body` once in the life of this stage.
  void once(const std::string& what, const std::function<void()>& body);
  void create_database(const std::string& name, const std::string& template_name) const;
  void drop_database(const std::string& name) const;

  /// `mailroom WORDS…` on `database`, with a key; files are named as in Process::Setup.
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
