#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "queue/queue_session.hpp"
#include "queue/surroundings.hpp"

namespace mailroom::test {

/// Virtual time, and what happens in it. Starts at an hour, so that no default time point is ever ahead.
class FakeSurroundings final : public Surroundings {
 public:
  /// `event` happens when so much time has passed since the start.
  void at(Milliseconds since_start, std::function<void()> event);
  void request_stop() { stop_ = true; }
  void request_reload() { reload_ = true; }
  /// Adds sockets, of which `readable` knows each by its index. The first one's number is returned, the
  /// others follow.
  int add_sockets(std::function<bool(std::size_t index)> readable);
  /// Lets time pass, with its events.
  void advance(Milliseconds duration);
  Milliseconds elapsed() const { return std::chrono::duration_cast<Milliseconds>(now_ - start); }

  TimePoint now() const override { return now_; }
  void wait(int socket, TimePoint until) override;
  void sleep_for(Milliseconds duration) override;
  void pause_for(Milliseconds duration) override { advance(duration); }
  bool stop_requested() const override { return stop_; }
  bool take_reload() override { return std::exchange(reload_, false); }

 private:
  bool is_readable(int socket) const;
  /// One step towards `until`: to the next event, which happens, or to the end.
  void step_to(TimePoint until);

  static constexpr TimePoint start{std::chrono::hours(1)};

  TimePoint now_ = start;
  std::multimap<TimePoint, std::function<void()>> events_;
  std::vector<std::function<bool(std::size_t)>> readable_;
  bool stop_ = false;
  bool reload_ = false;
};

enum class Operation { connect, claim, fetch, take_notifications, check_health };

/// A call that is about to reach the server.
struct Call {
  Operation operation;
  int number;  ///< among all calls, from 1
  int nth;     ///< among those of its operation, from 1
};

/// What befalls a call; a lost reply is one whose effect the server keeps.
enum class Fault { none, lost_request, lost_reply };

/// What the fake server knows of a batch.
struct FakeBatch {
  std::vector<std::int64_t> tokens;
  int attempt = 1;
  int holder = 0;  ///< a session
  std::optional<BatchCounts> emitted{};
  bool set_aside = false;

  bool is_open() const { return !emitted && !set_aside; }
};

/// The server's side of the queue protocol, without SQL: leases that end with their session, orphans handed
/// out again with the next attempt, acknowledgements fenced by it and good any number of times. Sessions live
/// as long as this does, at the most.
class FakeServer {
 public:
  explicit FakeServer(FakeSurroundings& surroundings);

  /// Commits tokens, each due and of an account of its own.
  void add_tokens(int count, bool notify = true);
  /// A batch of new tokens whose collector is gone.
  void add_orphan(int tokens);
  std::unique_ptr<QueueSession> connect();
  /// Every session ends, and nobody can connect for `duration`.
  void go_away(Milliseconds duration = {});

  /// Asked before each call; may throw what the call should.
  std::function<Fault(const Call&)> on_call = [](const Call&) { return Fault::none; };
  /// How long the server keeps a session whose client has lost the connection.
  Milliseconds linger{};
  Milliseconds claim_takes{};

  int calls() const { return calls_; }
  const std::vector<ClaimRequest>& claims() const { return claims_; }
  const std::vector<TimePoint>& claim_times() const { return claim_times_; }
  /// By batch id.
  const std::map<std::int64_t, FakeBatch>& batches() const { return batches_; }
  int open_batches() const;
  std::size_t waiting() const { return waiting_.size(); }
  std::int64_t last_token() const { return last_token_; }

 private:
  friend class FakeSession;

  struct Session {
    bool is_connected = true;  ///< as its client sees it
    bool is_notified = false;
    std::optional<TimePoint> ends;
  };

  Fault begin_call(Operation operation, int session);
  void end_call(Fault fault, int session);
  void disconnect(int session, Milliseconds after);
  bool holds(int session) const;
  bool readable(std::size_t session) const;

  ClaimReply claim(int session, const ClaimRequest& request);
  bool acknowledge(const Receipt& receipt);
  std::map<std::int64_t, FakeBatch>::iterator find_orphan(int session, const ClaimRequest& request,
                                                          ClaimReply& reply);
  void take(int session, const ClaimRequest& request, ClaimReply& reply);
  std::vector<std::int64_t> tokens_of(const Lease& lease) const;

  FakeSurroundings& surroundings_;
  int first_socket_;
  int calls_ = 0;
  std::map<Operation, int> calls_of_;
  std::vector<ClaimRequest> claims_;
  std::vector<TimePoint> claim_times_;
  TimePoint away_until_{};
  std::vector<Session> sessions_;
  std::vector<std::int64_t> waiting_;
  std::int64_t last_token_ = 0;
  std::map<std::int64_t, FakeBatch> batches_;
};

/// A due activation token of an account that is named after its id.
void with_token_row(std::int64_t id, const std::function<void(const TokenRow&)>& each);

}  // namespace mailroom::test
