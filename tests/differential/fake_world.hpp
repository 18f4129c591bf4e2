#pragma once

#include "differential/queue_world.hpp"
#include "support/fake_server.hpp"

namespace mailroom::test {

/// The fake server, in virtual time.
class FakeWorld final : public QueueWorld {
 public:
  explicit FakeWorld(const MakeFakeQueue& make_queue = {}) : server_(time_, make_queue) {}

  std::int64_t insert(int writer, const queue::Action* action) override;
  void commit(int writer, std::optional<int> lifetime) override;
  void roll_back(int writer) override;
  void flood(int count) override;
  void consume(std::int64_t token) override { committed(token).is_consumed = true; }
  void suspend_account_of(std::int64_t token) override { committed(token).has_wrong_status = true; }
  void remove(std::int64_t token) override { server_.tokens().committed.erase(token); }

  std::unique_ptr<claim::QueueSession> connect(bool delivers) override { return server_.connect(delivers); }
  void terminate(claim::QueueSession& session) override { server_.cut(session.socket()); }
  void disconnect(std::unique_ptr<claim::QueueSession> session) override { session.reset(); }

  void pass(int units) override { time_.advance(play_unit * units); }
  Rewound rewind(std::int64_t target) override;
  std::int64_t replay(const Ids& tokens) override { return server_.queue().replay(tokens); }
  bool pause(bool paused) override;
  void define(const PlayedDefinition& definition) override;

  void prepare_claim() override {}
  Snapshot snapshot(const Ids& batches) override;

 private:
  FakeToken& committed(std::int64_t token) { return server_.tokens().committed.at(token); }
  Snapshot::Batch describe(std::int64_t id, const FakeBatch& batch) const;

  FakeEnvironment time_;
  FakeServer server_;
  std::map<int, std::map<std::int64_t, const queue::Action*>> inserted_;  ///< by writer
};

}  // namespace mailroom::test
