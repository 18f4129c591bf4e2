#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fault/fault.hpp"
#include "fault/message_load.hpp"
#include "support/test_consumer.hpp"
#include "support/write_load.hpp"

namespace mailroom::test {

/// One database with the schema, in which a fault runs, and what is found there.
class TrialRig {
 public:
  TrialRig(const Cluster& cluster, const Plan& plan);
  virtual ~TrialRig();
  TrialRig(const TrialRig&) = delete;
  TrialRig& operator=(const TrialRig&) = delete;

  std::mt19937_64& random() { return random_; }
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  /// A random moment for the next fault.
  void pause(int from_ms, int to_ms);
  const std::string& conninfo() const { return conninfo_; }
  /// Opens a session with the database; waits for a server that is starting.
  std::unique_ptr<db::Connection> connect() const;
  void expect(bool met, const std::string& what);
  void note(std::string figure) { outcome_.notes.push_back(std::move(figure)); }

 protected:
  const std::string& database() const { return database_; }
  /// Makes connect() open sessions with the same database of another cluster.
  void use(const Cluster& cluster) { conninfo_ = cluster.conninfo(database_); }
  void start_writers(const std::string& conninfo, int writers, const WriteLoad::Options& load);
  void start_producers(int producers);
  bool has_writers() const { return load_ != nullptr; }
  /// Ends the producers too.
  void end_writers();
  /// Of the producers, after end_writers(); null without any.
  const MessageNotes* message_notes() const { return messages_ ? &messages_->notes() : nullptr; }
  /// Adds the ends of logs, if there are problems.
  void note_logs(const std::vector<std::string>& logs);

  Outcome outcome_;

 private:
  std::string database_;
  std::string conninfo_;
  std::string admin_;  ///< connection string of another database of the same cluster
  std::uint64_t seed_;
  std::mt19937_64 random_;
  std::unique_ptr<WriteLoad> load_;
  std::unique_ptr<MessageLoad> messages_;
};

}  // namespace mailroom::test
