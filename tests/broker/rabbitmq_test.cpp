// Lines to a real RabbitMQ cluster: what is accepted is there, once unless the server of the connection died.
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>

#include "broker/rabbitmq_rig.hpp"
#include "support/carrier_contract.hpp"
#include "support/catch.hpp"
#include "support/refusing_port.hpp"

namespace mailroom::test::rabbitmq_test {

using namespace std::chrono_literals;

namespace {

/// Bytes that have come to a port of this machine, and that the process there has not read.
std::size_t unread_bytes(int port) {
  std::size_t unread = 0;
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    unsigned local = 0;
    unsigned long received = 0;
    if (std::sscanf(line.c_str(), " %*d: %*8x:%x %*8x:%*x %*x %*x:%lx", &local, &received) != 2) continue;
    if (local == static_cast<unsigned>(port)) unread += received;
  }
  return unread;
}

/// The number of the node that the carrier is connected to, by the answer of a line.
int node_of(const config::Settings& settings, const delivery::Answer& answer) {
  const auto place = settings.sink.to.find(answer.sink);
  REQUIRE(place != std::string::npos);
  return 1 + static_cast<int>(std::count(settings.sink.to.begin(),
                                         settings.sink.to.begin() + static_cast<std::ptrdiff_t>(place), ','));
}

}  // namespace

TEST_CASE("RabbitMQ's carrier promises what every carrier does") {
  RabbitmqRig rig;
  check_carrier("amqp", *rig.carrier(), delivery::Verdict::accepted);
  const RefusingPort closed;
  rig.settings.sink.to = fmt::format("amqp://127.0.0.1:{}", closed.port());
  check_carrier("amqp", *rig.carrier(), delivery::Verdict::unavailable);
  const SilentPort silent;
  rig.settings.sink.to = fmt::format("amqp://127.0.0.1:{}", silent.port());
  check_cancel("amqp", *rig.carrier());
}

TEST_CASE("RabbitMQ stores each line once, with its id and header") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(500);
  hand_over(*carrier, lines);
  CHECK(lines[0].answers.at(0).reply == "confirmed");
  CHECK(node_of(rig.settings, lines[0].answers.at(0)) == 1);
  require_each_once(lines, rig.read());
  CHECK(rig.reader.first() == "id: " + lines[0].message_id +
                                  ", type: application/json, mode: 2, app: mailroom, Mailroom-Attempt: 1, "
                                  "Mailroom-Batch: 7, Mailroom-Tokens: 3\n" +
                                  lines[0].body);
}

TEST_CASE("a line has the attributes of a CloudEvent where the settings name its source") {
  RabbitmqRig rig;
  rig.settings.sink.event_source = "/mailroom";
  const auto line = make_lines(1)[0];
  CHECK(hand_over_once(*rig.carrier(), line).verdict == delivery::Verdict::accepted);
  rig.read();
  const std::vector<std::string> attributes{
      "cloudEvents_specversion: 1.0",  "cloudEvents_id: " + line.message_id,
      "cloudEvents_source: /mailroom", "cloudEvents_type: mailroom.activation",
      "cloudEvents_subject: mailroom", "cloudEvents_time: 2026-11-23T12:54:48Z"};
  CHECK(lacking(rig.reader.first(), attributes) == std::vector<std::string>());
}

TEST_CASE("a queue or exchange that does not exist is refused at the start") {
  RabbitmqRig rig;
  rig.settings.sink.routing_key = "other.{queue}";
  CHECK(lacking(refusal_of([&] { rig.carrier(); }),
                {"there is no queue other.mailroom", "rabbitmqctl import_definitions"}) ==
        std::vector<std::string>());
  rig.settings.sink.exchange = "nowhere";
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"there is no exchange nowhere"}) ==
        std::vector<std::string>());
}

TEST_CASE("a line that no queue takes waits, and so does one for an exchange that goes") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  const auto line = make_lines(1)[0];
  rig.reader.drop_queue(rig.queue);
  const auto answer = hand_over_once(*carrier, line);
  CHECK(answer.verdict == delivery::Verdict::unavailable);
  CHECK(answer.code == 312);
  CHECK(answer.reply == "312 NO_ROUTE: no queue takes routing key '" + rig.queue + "' of exchange ''");
  rig.reader.make_queue(rig.queue);
  CHECK(hand_over_once(*carrier, line).verdict == delivery::Verdict::accepted);
}

TEST_CASE("an exchange of one's own leads lines to the queues that are bound to it") {
  RabbitmqRig rig;
  rig.settings.sink.exchange = "amq.direct";
  rig.settings.sink.routing_key = "{queue}.{action}";
  const auto carrier = rig.carrier();
  const auto line = make_lines(1)[0];
  CHECK(hand_over_once(*carrier, line).code == 312);
}

TEST_CASE("a line that is larger than the server takes is rejected, and others are not") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(20);
  lines[10].body.assign(1'100'000, 'x');
  hand_over(*carrier, lines);
  CHECK(lines[10].rejected);
  CHECK(lines[10].answers.back().code == 406);
  lines.erase(lines.begin() + 10);
  require_each(lines, rig.read());
  auto line = make_lines(1)[0];
  // It is known now.
  line.body.assign(1'048'577, 'x');
  CHECK(hand_over_once(*carrier, line).verdict == delivery::Verdict::rejected);
  line.body.assign(1'048'576, 'x');
  CHECK(hand_over_once(*carrier, line).verdict == delivery::Verdict::accepted);
}

TEST_CASE("a user who may not publish makes lines wait") {
  RabbitmqRig rig;
  rabbitmqctl("set_permissions mail@room '.*' '^$' '.*'");
  const auto carrier = rig.carrier();
  const auto line = make_lines(1)[0];
  const auto answer = hand_over_once(*carrier, line);
  rabbitmqctl("set_permissions mail@room '.*' '.*' '.*'");
  CHECK(answer.verdict == delivery::Verdict::unavailable);
  CHECK(answer.code == 403);
  CHECK(eventually([&] { return hand_over_once(*carrier, line).verdict == delivery::Verdict::accepted; }));
}

TEST_CASE("a killed leader of the queue costs no line and repeats none") {
  RabbitmqRig rig;
  auto carrier = rig.carrier();
  const int leader = rabbitmq_leader(rig.queue);
  // Connected to another node, which knows what the leader has not confirmed.
  if (leader == 1)
    rig.settings.sink.to.replace(rig.settings.sink.to.find("localhost"),
                                 rig.settings.sink.to.find(',') + 1 - rig.settings.sink.to.find("localhost"),
                                 "");
  carrier = rig.carrier();
  auto lines = make_lines(6000);
  hand_over_beside(*carrier, lines, [&](const Answered&) { rig.nodes.kill(leader); });
  rig.restore();
  require_each_once(lines, rig.read());
}

TEST_CASE("a killed follower of the queue costs no line and repeats none") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  // The carrier is connected to node 1.
  const int follower = rabbitmq_leader(rig.queue) == 2 ? 3 : 2;
  auto lines = make_lines(6000);
  hand_over_beside(*carrier, lines, [&](const Answered&) { rig.nodes.kill(follower); });
  rig.restore();
  require_each_once(lines, rig.read());
}

TEST_CASE("the server of the connection is killed, and another takes the lines") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(6000);
  hand_over_beside(*carrier, lines, [&](const Answered&) { rig.nodes.kill(1); });
  CHECK(node_of(rig.settings, lines.back().answers.back()) != 1);
  rig.restore();
  require_each_once_unless_unknown(lines, rig.read());
}

TEST_CASE("a leader of the queue that stands still until another leads costs no line") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  const int leader = rabbitmq_leader(rig.queue);
  auto lines = make_lines(6000);
  hand_over_beside(*carrier, lines, [&](const Answered& answered) {
    rig.nodes.stop(leader);
    answered.await_more();
    rig.nodes.resume(leader);
  });
  require_each_once_unless_unknown(lines, rig.read());
}

TEST_CASE("lines wait while the queue has no quorum, and come once afterwards") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(3000);
  int accepted = 0;
  hand_over_beside(*carrier, lines, [&](const Answered& answered) {
    rig.nodes.kill(2);
    rig.nodes.kill(3);
    const int before = answered.accepted;
    // Meanwhile the remaining server learns that it is alone.
    while (rabbitmqctl("eval 'nodes().'").find("node") != std::string::npos) {
    }
    accepted = answered.accepted - before;
    rig.nodes.restore();
  });
  // What a majority had is confirmed, and no more.
  CHECK(accepted <= lines_in_flight);
  rig.restore();
  require_each_once(lines, rig.read());
}

TEST_CASE("all servers are killed and started again, and every line is there") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  keep_rabbitmq_definitions();
  auto lines = make_lines(3000);
  hand_over_beside(*carrier, lines, [&](const Answered& answered) {
    for (const int node : {1, 2, 3})
      rig.nodes.kill(node);
    answered.await_wait();
    rig.restore();
  });
  rig.restore();
  require_each(lines, rig.read());
}

TEST_CASE("what was sent is unknown when the sink gives it up, and what was not is unavailable") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  // A server that has just been started may still close its connections.
  REQUIRE(eventually(
      [&] { return hand_over_once(*carrier, make_lines(1)[0]).verdict == delivery::Verdict::accepted; }));
  for (const int node : {1, 2, 3})
    rig.nodes.stop(node);
  const int port = std::stoi(rig.settings.sink.to.substr(rig.settings.sink.to.find(':', 7) + 1));
  const auto line = make_lines(1)[0];
  carrier->submit(parcel_of(line, 5));
  // Of the server that the carrier is connected to.
  CHECK(eventually([&] {
    return std::max({unread_bytes(port), unread_bytes(port + 1), unread_bytes(port + 2)}) > line.body.size();
  }));
  carrier->cancel();
  const auto answers = carrier->take();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].verdict == delivery::Verdict::unknown);
  CHECK(carrier->unfinished() == 0);
}

}  // namespace mailroom::test::rabbitmq_test
