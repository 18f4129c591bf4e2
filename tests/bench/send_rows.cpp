// How fast `mailroom send` mails a backlog, beside a program that only mails: both into Postfix' smtp-sink,
// which takes every mail and keeps none.

#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include "bench/databases.hpp"
#include "bench/distance.hpp"
#include "bench/latency.hpp"
#include "bench/message_databases.hpp"
#include "bench/row.hpp"
#include "support/loopback_socket.hpp"
#include "support/test_relay.hpp"

namespace mailroom::bench {
namespace {

constexpr std::int64_t mails_of_a_run = 20'000;  ///< before scaling

bool is_open(int port) {
  try {
    close(test::connect_on_loopback(port));
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

/// A running smtp-sink.
class Sink {
 public:
  Sink()
      : port_(test::free_port()),
        process_({.command = {"/usr/sbin/smtp-sink", "-u", "nobody", address(), "256"}}) {
    for (int i = 0; i < 500; ++i) {
      if (is_open(port_)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    throw std::runtime_error("smtp-sink does not listen; scripts/install-packages --tests brings it");
  }

  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  int port_;
  Process process_;
};

Figures per_second(std::int64_t count, const Cost& cost) {
  return {{.value = static_cast<double>(count) / cost.seconds, .unit = "mails/s"}};
}

/// Mails of the same size over four kept connections.
Figures measure_source(Stage& stage) {
  const Sink sink;
  const auto count = stage.scaled(mails_of_a_run);
  const auto cost = Process({.command = {"/usr/sbin/smtp-source", "-d", "-s", "4", "-m",
                                         std::to_string(count), "-l", "2500", "-f", "no-reply@app.example",
                                         "-t", "user1@bench.example", sink.address()}})
                        .wait();
  return per_second(count, cost);
}

/// `mailroom send OPTIONS…`
Process::Setup sender(Stage& stage, const std::string& database, std::vector<std::string> options) {
  options.insert(options.begin(), {"send", "-q"});
  auto setup = stage.mailroom(database, std::move(options));
  setup.environment["MAILROOM_SEND_FROM"] = "Example <no-reply@app.example>";
  setup.environment["MAILROOM_SEND_LINK"] = "https://app.example/{action}?token={token}";
  setup.errors = stage.path("send.log");
  return setup;
}

struct Sending {
  int connections;
  int limit;
};

/// `relay`: `127.0.0.1:2525`
Cost send(Stage& stage, const Sending& sending, const Backlog& backlog, std::int64_t count,
          const std::string& relay) {
  const auto connection = stage.connect(backlog.database);
  place_cursor(*connection, backlog.due - count);
  connection->run("TRUNCATE mailroom_deliveries");
  const auto setup =
      sender(stage, backlog.database,
             {"--once", "--relay", "smtp://" + relay, "--connections", std::to_string(sending.connections),
              "--batch-limit", std::to_string(sending.limit)});
  const auto cost = Process(setup).wait();
  const auto accepted =
      connection->run("SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted'")[0][0]
          .as<std::int64_t>();
  if (accepted != count)
    throw std::runtime_error(fmt::format("{} of {} mails were accepted", accepted, count));
  return cost;
}

Row send_row(const Sending& sending, const std::string& name = "", const std::string& meaning = "",
             Backlog (*make_backlog)(Stage&) = plain_backlog) {
  return {.name = fmt::format("send/{}/{}{}", sending.connections, sending.limit, name),
          .meaning = fmt::format("a sender with {} connections and batches of {}, into smtp-sink{}",
                                 sending.connections, sending.limit, meaning),
          .prepare = [make_backlog](Stage& stage) { make_backlog(stage); },
          .measure =
              [sending, make_backlog](Stage& stage) {
                const Sink sink;
                const auto count = stage.scaled(mails_of_a_run);
                return per_second(count, send(stage, sending, make_backlog(stage), count, sink.address()));
              }};
}

/// Over one connection to a relay that a round trip of 100 ms leads to.
Figures measure_far(Stage& stage, const std::string& relay, std::int64_t mails, int limit) {
  constexpr std::chrono::milliseconds round_trip{100};
  const Distance distance(relay, round_trip);
  const auto count = stage.scaled(mails);
  const auto cost =
      send(stage, {.connections = 1, .limit = limit}, plain_backlog(stage), count, distance.address());
  return per_second(count, cost);
}

std::vector<Row> far_rows() {
  std::vector<Row> rows{{.name = "send/far",
                         .meaning = "over one connection to smtp-sink, 100 ms away, batches of 10",
                         .prepare = [](Stage& stage) { plain_backlog(stage); },
                         .measure =
                             [](Stage& stage) {
                               const Sink sink;
                               return measure_far(stage, sink.address(), 100, 10);
                             }}};
  const char* const postfix = std::getenv("MAILROOM_TEST_RELAY");
  if (postfix == nullptr) return rows;
  for (const int limit : {10, 200}) {
    rows.push_back(
        {.name = fmt::format("send/far/chunks/{}", limit),
         .meaning = fmt::format(
             "over one connection to a Postfix, which takes chunks, 100 ms away, batches of {}", limit),
         .prepare = [](Stage& stage) { plain_backlog(stage); },
         .measure = [=](Stage& stage) { return measure_far(stage, postfix, 10 * limit, limit); }});
  }
  return rows;
}

/// From the commit to the relay's 250 at the end of the message.
Figures measure_send_latency(Stage& stage, const std::string& insert) {
  const std::string database = "live";
  clear_queue(stage, database);
  std::optional<test::TestRelay> relay;
  const auto answer_and_note = [](ArrivalTimes& times) {
    return [&times](const test::RelayMoment& moment) {
      if (moment.step == test::RelayStep::end) times.note(moment.recipient);
      return test::RelayAnswer{};
    };
  };
  const Consumer consumer{
      .database = database,
      .setup =
          [&] {
            return sender(stage, database, {"--relay", relay->url(), "--batch-limit", "1"});
          },
      .is_ready = [&] { return has_collector(stage, database); },
      .watch =
          [&](ArrivalTimes& times) {
            relay.emplace(
                test::TestRelay::Options{.play = answer_and_note(times), .offers_pipelining = true});
          },
      .insert = insert};
  return measure_latency(stage, consumer, {.rate = 100, .clients = 2, .seconds = 5});
}

/// A message to the address of account $1.
std::string insert_message() {
  return fmt::format(
      "INSERT INTO mailroom_messages (recipients, subject, text) "
      "VALUES (ARRAY['user' || $1::bigint || '@bench.example'], 'Your receipt', '{}') "
      "RETURNING pg_current_xact_id()::text",
      body_literal());
}

Row latency_row(const std::string& name, const std::string& meaning, const std::string& insert) {
  return {.name = name,
          .meaning = "from the commit to the relay's 250: " + meaning + ", batch limit 1",
          .prepare = [](Stage& stage) { make_live_database(stage, "live"); },
          .measure = [insert](Stage& stage) { return measure_send_latency(stage, insert); }};
}

}  // namespace

std::vector<Row> send_rows() {
  std::vector<Row> rows{
      {.name = "send/source",
       .meaning = "smtp-source with 4 kept connections, into the same smtp-sink",
       .prepare = [](Stage&) {},
       .measure = measure_source},
      send_row({.connections = 4, .limit = 10}),
      send_row({.connections = 4, .limit = 100}),
      send_row({.connections = 4, .limit = 100}, "/messages", ": messages of 2 kB", all_messages),
      latency_row("send/latency", "100 inserts/s", Consumer{}.insert),
      latency_row("send/latency/messages", "100 messages of 2 kB a second", insert_message()),
      {.name = "memory/send",
       .meaning = "peak resident memory of a sender with 16 connections",
       .prepare = [](Stage& stage) { plain_backlog(stage); },
       .measure = [](Stage& stage) -> Figures {
         const Sink sink;
         const auto cost = send(stage, {.connections = 16, .limit = 100}, plain_backlog(stage),
                                stage.scaled(mails_of_a_run), sink.address());
         return {{.value = static_cast<double>(cost.peak_kib) / 1024, .unit = "MiB"}};
       }}};
  for (auto& row : far_rows())
    rows.push_back(std::move(row));
  return rows;
}

}  // namespace mailroom::bench
