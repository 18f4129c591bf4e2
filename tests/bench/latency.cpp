#include "bench/latency.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "bench/databases.hpp"

namespace mailroom::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int warm_up_tokens = 20;

struct Sent {
  std::int64_t account;
  std::string transaction;
};

/// Inserts tokens on one session, for every `clients`th provisioned account from `first` on.
class Producer {
 public:
  Producer(Stage& stage, const Consumer& consumer) : connection_(stage.connect(consumer.database)) {
    connection_->prepare("produce", consumer.insert);
  }

  void send(std::int64_t account) {
    sent_.push_back({account, connection_->run_prepared("produce", account)[0][0].as<std::string>()});
  }

  /// Token n is due at start + n / rate, late or not. Gives up after 1.5 times the planned duration.
  void send_on_schedule(int first, int clients, double rate, std::int64_t count) {
    const auto start = Clock::now();
    const auto give_up = start + std::chrono::duration<double>(1.5 * static_cast<double>(count) / rate);
    for (std::int64_t n = first; n < count && Clock::now() < give_up; n += clients) {
      std::this_thread::sleep_until(start +
                                    std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(static_cast<double>(n) / rate)));
      send(provisioned_account(warm_up_tokens + n));
    }
  }

  const std::vector<Sent>& sent() const { return sent_; }

 private:
  std::unique_ptr<db::Connection> connection_;
  std::vector<Sent> sent_;
};

/// The time of each commit, in microseconds since 1970.
std::vector<std::int64_t> commit_times(db::Connection& connection, const std::vector<Sent>& sent) {
  std::string transactions = "{";
  for (const auto& each : sent)
    transactions += (transactions.size() > 1 ? "," : "") + each.transaction;
  const auto rows = connection.run(
      "SELECT (extract(epoch FROM pg_xact_commit_timestamp(x.id::xid)) * 1000000)::bigint "
      "FROM unnest($1::text[]) WITH ORDINALITY AS x(id, n) ORDER BY x.n",
      transactions + "}");
  std::vector<std::int64_t> times;
  for (const auto& row : rows)
    times.push_back(row[0].as<std::int64_t>());
  return times;
}

double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted.at(static_cast<std::size_t>(std::max(rank, 1.0)) - 1);
}

Figures summarise(std::vector<double> milliseconds) {
  std::sort(milliseconds.begin(), milliseconds.end());
  return {{"p50", percentile(milliseconds, 0.5), "ms"},
          {"p99", percentile(milliseconds, 0.99), "ms"},
          {"p99.9", percentile(milliseconds, 0.999), "ms"},
          {"worst", milliseconds.back(), "ms"}};
}

/// One session a client.
class Producers {
 public:
  Producers(Stage& stage, const Consumer& consumer, const Arrivals& arrivals)
      : arrivals_(arrivals),
        count_(static_cast<std::int64_t>(arrivals.rate * stage.scaled_seconds(arrivals.seconds))) {
    for (int i = 0; i < arrivals.clients; ++i)
      each_.push_back(std::make_unique<Producer>(stage, consumer));
  }

  /// Inserts as scheduled. Returns how many commits a second that were.
  double send_all() {
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(each_.size());
    for (std::size_t i = 0; i < each_.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          each_[i]->send_on_schedule(static_cast<int>(i), arrivals_.clients, arrivals_.rate, count_);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
    for (auto& thread : threads)
      thread.join();
    for (const auto& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    return static_cast<double>(sent()) / took.count();
  }

  std::int64_t sent() const {
    std::int64_t all = 0;
    for (const auto& producer : each_)
      all += static_cast<std::int64_t>(producer->sent().size());
    return all;
  }
  const std::vector<std::unique_ptr<Producer>>& each() const { return each_; }

 private:
  const Arrivals& arrivals_;
  std::int64_t count_;
  std::vector<std::unique_ptr<Producer>> each_;
};

class Measurement {
 public:
  Measurement(Stage& stage, const Consumer& consumer, const Arrivals& arrivals)
      : stage_(stage),
        consumer_(consumer),
        arrivals_(arrivals),
        times_(account_count(stage)),
        sink_(times_, consumer.only_action) {}

  Figures run() {
    if (consumer_.watch) consumer_.watch(times_);
    auto setup = consumer_.setup();
    setup.output_fd = sink_.input();
    Process process(std::move(setup));
    sink_.close_input();
    if (!test::eventually(consumer_.is_ready)) throw std::runtime_error("the consumer does not begin");
    warm_up();
    auto figures = arrivals_.rate > 0 ? open_loop() : closed_loop();
    if (consumer_.at_end) consumer_.at_end();
    process.signal(SIGTERM);
    process.wait();
    return figures;
  }

 private:
  void warm_up() {
    Producer producer(stage_, consumer_);
    for (int i = 0; i < warm_up_tokens; ++i)
      producer.send(provisioned_account(i));
    if (!times_.wait_for_count(warm_up_tokens)) throw std::runtime_error("the first tokens did not come out");
  }

  Figures closed_loop() {
    Producer producer(stage_, consumer_);
    const auto until = Clock::now() + std::chrono::duration<double>(stage_.scaled_seconds(arrivals_.seconds));
    for (std::int64_t n = warm_up_tokens; Clock::now() < until; ++n) {
      producer.send(provisioned_account(n));
      if (!times_.wait_for(provisioned_account(n))) throw std::runtime_error("a token did not come out");
    }
    return summarise(latencies(producer));
  }

  Figures open_loop() {
    Producers producers(stage_, consumer_, arrivals_);
    const auto rate = producers.send_all();
    if (!times_.wait_for_count(warm_up_tokens + producers.sent()))
      throw std::runtime_error("not all tokens came out");
    std::vector<double> all;
    for (const auto& producer : producers.each()) {
      const auto some = latencies(*producer);
      all.insert(all.end(), some.begin(), some.end());
    }
    auto figures = summarise(std::move(all));
    figures.push_back({"rate", rate, "commits/s"});
    return figures;
  }

  std::vector<double> latencies(const Producer& producer) {
    const auto committed = commit_times(*stage_.connect(consumer_.database), producer.sent());
    std::vector<double> all;
    for (std::size_t i = 0; i < committed.size(); ++i) {
      const auto came = times_.came_at(producer.sent()[i].account);
      if (came == 0) throw std::runtime_error("a token did not come out");
      all.push_back(static_cast<double>(came - committed[i]) / 1000);
    }
    return all;
  }

  Stage& stage_;
  const Consumer& consumer_;
  const Arrivals& arrivals_;
  ArrivalTimes times_;
  LineSink sink_;
};

}  // namespace

Figures measure_latency(Stage& stage, const Consumer& consumer, const Arrivals& arrivals) {
  return Measurement(stage, consumer, arrivals).run();
}

Figures measure_inserts(Stage& stage, const Consumer& consumer, const Arrivals& arrivals) {
  return {{"rate", Producers(stage, consumer, arrivals).send_all(), "commits/s"}};
}

}  // namespace mailroom::bench
