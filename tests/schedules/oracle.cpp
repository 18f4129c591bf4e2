#include "schedules/oracle.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <sstream>

#include "schedules/process.hpp"

namespace mailroom::test {
namespace {

constexpr Milliseconds take_over_grace{1500};

struct Line {
  std::int64_t batch = 0;
  int attempt = 0;
  int life = 0;
  TimePoint fetched{};
  TimePoint written{};
  std::vector<std::int64_t> tokens;
};

class Oracle {
 public:
  explicit Oracle(const World& world) : world_(world) {}

  std::string judge() {
    fault_ = world_.fault();
    read_lines();
    check_rest();
    for (auto& [batch, lines] : lines_) {
      check_batch(batch, lines);
    }
    check_tokens();
    return fault_;
  }

 private:
  template <typename... Values>
  void check(bool right, fmt::format_string<Values...> what, Values&&... values) {
    if (!right && fault_.empty()) fault_ = fmt::format(what, std::forward<Values>(values)...);
  }

  void read_lines() {
    int cut_short = 0;
    for (const auto& process : world_.processes()) {
      check(!process->is_running(), "a collector does not end");
      const auto text = process->written();
      std::istringstream stream(text);
      for (std::string text_line; std::getline(stream, text_line);) {
        const bool whole = text_line.size() > 4 && text_line.compare(text_line.size() - 4, 4, " end") == 0;
        if (whole)
          read_line(text_line);
        else
          ++cut_short;
      }
    }
    check(cut_short <= world_.torn_lines, "a line is cut short without a crash");
    for (auto& [batch, lines] : lines_) {
      std::sort(lines.begin(), lines.end(),
                [](const Line& a, const Line& b) { return a.attempt < b.attempt; });
    }
  }

  void read_line(const std::string& text) {
    std::istringstream words(text);
    Line line;
    TimePoint::rep fetched = 0;
    TimePoint::rep written = 0;
    words >> line.batch >> line.attempt >> line.life >> fetched >> written;
    line.fetched = TimePoint(TimePoint::duration(fetched));
    line.written = TimePoint(TimePoint::duration(written));
    check(!words.fail(), "a line begins inside another: {}", text);
    for (std::int64_t id = 0; words >> id;) {
      line.tokens.push_back(id);
    }
    words.clear();
    std::string rest;
    check(words >> rest && rest == "end" && !(words >> rest), "a line contains more than a batch: {}", text);
    check(line.tokens.size() <= static_cast<std::size_t>(world_.knobs.limit), "a line exceeds the limit: {}",
          text);
    add_to_batch(line);
  }

  /// A batch that was claimed with a larger limit than its writer's has several lines, without duplicate
  /// tokens.
  void add_to_batch(const Line& line) {
    auto& lines = lines_[line.batch];
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& other) {
      return other.attempt == line.attempt && other.life == line.life;
    });
    if (same == lines.end()) return lines.push_back(line);
    for (const auto token : line.tokens) {
      const bool again = std::find(same->tokens.begin(), same->tokens.end(), token) != same->tokens.end();
      check(!again, "token {} is twice in an attempt of batch {}", token, line.batch);
      same->tokens.push_back(token);
    }
    same->written = std::max(same->written, line.written);
  }

  void check_rest() {
    check(world_.server.open_batches() == 0, "{} batches are left open", world_.server.open_batches());
    check(world_.server.due() == 0, "{} tokens are left waiting", world_.server.due());
    for (const auto& [id, batch] : world_.server.batches()) {
      check(!batch.dead, "batch {} has been dead-lettered", id);
      const auto& counts = *batch.emitted;
      check(counts.emitted + counts.expired == static_cast<int>(batch.tokens.size()),
            "batch {} is acknowledged with other counts", id);
      check(counts.emitted == 0 || lines_.count(id) == 1, "batch {} is acknowledged and not written", id);
    }
  }

  void check_batch(std::int64_t id, const std::vector<Line>& lines) {
    const auto known = world_.server.batches().find(id);
    if (known == world_.server.batches().end())
      return check(false, "a line of batch {}, which does not exist", id);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) check_repeat(known->second, lines[i - 1], lines[i]);
      for (const auto token : lines[i].tokens) {
        check_token(token, lines[i], known->second);
      }
    }
  }

  void check_token(std::int64_t id, const Line& line, const FakeBatch& batch) {
    const auto& of_batch = batch.tokens;
    check(std::find(of_batch.begin(), of_batch.end(), id) != of_batch.end(), "token {} is not of batch {}",
          id, line.batch);
    const auto token = world_.tokens().find(id);
    check(token != world_.tokens().end(), "token {} was emitted and never committed", id);
    if (token == world_.tokens().end()) return;
    check(token->second.committed <= line.fetched, "token {} was emitted before its commit", id);
    check(token->second.expires > line.fetched, "token {} was emitted after it expired", id);
    auto& first = first_out_.try_emplace(id, line.written).first->second;
    first = std::min(first, line.written);
  }

  /// Checks that the lease which made the acknowledgement of `before` void was allowed.
  void check_repeat(const FakeBatch& batch, const Line& before, const Line& after) {
    check(after.attempt > before.attempt, "an attempt of batch {} was emitted twice", before.batch);
    const auto& hold = batch.holds.at(static_cast<std::size_t>(before.attempt) - 1);
    const auto& next = batch.holds.at(static_cast<std::size_t>(before.attempt));
    const auto& life = world_.lives.at(static_cast<std::size_t>(before.life));
    const auto taker = world_.life_of(next.session);
    if (life.has_died || life.given_up > 0) {
      const int allowed = (life.has_died ? 1 : 0) + life.given_up;
      if (++repeats_of_life_[before.life] <= allowed) return;
    }
    check(life.has_died || life.ended > next.since,
          "a collector did not acknowledge batch {} before it stopped", before.batch);
    check(taker != before.life, "one collector emitted batch {} twice", before.batch);
    const auto ended = world_.server.session_ended(hold.session);
    check(ended && *ended <= next.since, "batch {} was taken from a connected collector", before.batch);
    if (!ended) return;
    const auto began = world_.server.session_began(next.session);
    const bool may = began < *ended || next.since >= began + take_over_grace || is_first(next.session, taker);
    check(may, "batch {} was taken over at once after a reconnect", before.batch);
    check(repeated_sessions_.insert(hold.session).second, "a session's end repeats a second batch, {}",
          before.batch);
  }

  bool is_first(int session, int life) const {
    for (int earlier = 0; earlier < session; ++earlier) {
      if (world_.life_of(earlier) == life) return false;
    }
    return true;
  }

  /// How long a token may wait for a poll. While a transaction that has not notified stays open, a collector
  /// polls less and less often: each time after the transaction's age has doubled.
  std::chrono::nanoseconds unnoticed(const World::Token& token) const {
    const std::chrono::nanoseconds poll = world_.knobs.poll_interval;
    if (!world_.knobs.conditional) return poll;
    // Each of these polls asks for open transactions first.
    const auto asking = 8 * world_.knobs.latency;
    return std::min(poll, 2 * (token.committed - token.drawn) + Milliseconds(20)) + asking;
  }

  void check_tokens() {
    for (const auto& [id, token] : world_.tokens()) {
      const auto out = first_out_.find(id);
      if (out == first_out_.end()) {
        check(token.expires != TimePoint::max(), "token {} was never emitted", id);
        continue;
      }
      const auto bound = world_.bound_for(token.committed, out->second, unnoticed(token));
      check(out->second <= bound, "token {} was emitted {} ms late", id,
            std::chrono::duration_cast<Milliseconds>(out->second - bound).count());
    }
  }

  const World& world_;
  std::string fault_;
  std::map<std::int64_t, std::vector<Line>> lines_;
  std::map<std::int64_t, TimePoint> first_out_;
  std::map<int, int> repeats_of_life_;
  std::set<int> repeated_sessions_;
};

}  // namespace

std::string judge(const World& world) {
  return Oracle(world).judge();
}

}  // namespace mailroom::test
