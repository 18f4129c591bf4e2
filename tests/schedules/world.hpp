#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/fake_environment.hpp"
#include "support/fake_server.hpp"

namespace mailroom::test {

class Process;

/// The calls of a collector to its environment; a mishap happens at one of them.
enum class Step { connect, claim, fetch, notifications, waking, health, write, wait, sleep };

enum class Mishap {
  none,
  lost_request,  ///< before the server received it; at a step without a call the connection breaks
  lost_reply,    ///< after the call took effect
  crash_before,  ///< the process ends
  crash_after,
  torn_line,  ///< the process ends with half a line written
  output_closed,
  stop,
};

struct Knobs {
  int processes = 1;
  int limit = 3;
  Milliseconds batch_timeout{2000};
  Milliseconds line_cost{};  ///< of collectors that adapt limit and timeout, up to these; 0: both are fixed
  Milliseconds poll_interval{500};
  Milliseconds latency{};    ///< of a request or a reply, at most
  bool prompt = true;        ///< each commit of a token notifies at once
  bool conditional = false;  ///< … unless a collector was polling at the insert
};

/// A collector's process, from start to end.
struct Life {
  bool has_died = false;  ///< it could not acknowledge
  TimePoint ended = TimePoint::max();
  int given_up = 0;  ///< acknowledgements that it gave up, according to its log
  std::string log;
};

/// One server, its collectors, and all events, in virtual time; the same seed gives the same events.
class World {
 public:
  World(std::uint64_t seed, const Knobs& knobs);
  ~World();

  FakeEnvironment time;
  FakeServer server{time};
  Knobs knobs;
  /// Chooses the mishap of a step; called before each step.
  std::function<Mishap(Step)> choose = [](Step) { return Mishap::none; };
  double slow_readers = 0;               ///< the share of lines that wait for their reader
  std::optional<Milliseconds> revive{};  ///< restart an ended process after this time
  bool closing = false;                  ///< no more automatic starts

  Process& process(int slot) { return *processes_[static_cast<std::size_t>(slot)]; }
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

  std::int64_t draw_token();
  void roll_back_token(std::int64_t id) { server.roll_back_token(id); }
  void commit_token(std::int64_t id, TimePoint expires = TimePoint::max());
  void commit(int count, bool notify = true, TimePoint expires = TimePoint::max());
  void add_abandoned(int tokens);
  void restart_server(Milliseconds away);
  void at(Milliseconds since_start, std::function<void()> event) { time.at(since_start, std::move(event)); }
  void run_until(Milliseconds since_start);

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool chance(double share) { return static_cast<double>(random_() >> 11) * 0x1p-53 < share; }
  /// A random time up to `longest`, in nanoseconds, so that events rarely coincide.
  std::chrono::nanoseconds up_to(Milliseconds longest);

  /// Suspends all bounds from now on until the world has recovered.
  void disturb() { disturbances_.push_back(time.now()); }
  void note(int process, const char* what, std::int64_t value = 0);
  void fail(const std::string& what);
  void opened(int session, int life) { life_of_session_[session] = life; }

  /// The latest time by which a token must be emitted that may be emitted from `from` on. Disturbances
  /// between `from` and `emitted` extend it.
  TimePoint bound_for(TimePoint from, TimePoint emitted, std::chrono::nanoseconds unnoticed) const;
  std::string report(std::size_t steps) const;

  struct Token {
    TimePoint drawn;
    TimePoint committed;
    TimePoint expires;
  };

  std::vector<Life> lives;
  int torn_lines = 0;
  int smallest_limit;  ///< of all configurations; `knobs` has the largest
  const std::map<std::int64_t, Token>& tokens() const { return tokens_; }
  /// The life that opened the session; -1 if no process of this world did.
  int life_of(int session) const;
  const std::string& fault() const { return fault_; }
  TimePoint last_disturbance() const { return disturbances_.empty() ? TimePoint() : disturbances_.back(); }

 private:
  struct Note {
    TimePoint time;
    int process;
    const char* what;
    std::int64_t value;
  };

  void watch();

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<std::int64_t, TimePoint> drawn_;
  std::map<std::int64_t, Token> tokens_;
  std::map<int, int> life_of_session_;
  std::vector<TimePoint> disturbances_;
  std::vector<Note> notes_;
  std::string fault_;
  TimePoint full_since_ = TimePoint::max();
  std::size_t batches_seen_ = 0;
};

}  // namespace mailroom::test
