// Servers of a real JetStream cluster die and stand still: what is accepted is there, once.
#include "broker/nats_rig.hpp"
#include "broker/nats_witness.hpp"
#include "support/catch.hpp"

namespace mailroom::test::nats_fault_test {

using namespace std::chrono_literals;

TEST_CASE("a killed leader costs no line and repeats none") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  const int leader = rig.reader.leader();
  auto lines = make_lines(6000);
  hand_over_beside(*carrier, lines, [&](const Answered&) { rig.nodes.kill(leader); });
  rig.nodes.restore();
  require_each_once(lines, rig.reader.read());
}

TEST_CASE("a killed follower costs no line and repeats none") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  const int follower = rig.reader.leader() % 3 + 1;
  auto lines = make_lines(6000);
  hand_over_beside(*carrier, lines, [&](const Answered&) { rig.nodes.kill(follower); });
  rig.nodes.restore();
  require_each_once(lines, rig.reader.read());
}

TEST_CASE("the server of the connection is killed, and another takes the lines") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(6000);
  hand_over_beside(*carrier, lines, [&](const Answered&) { rig.nodes.kill(1); });
  CHECK(lines.back().answers.back().sink != lines.front().answers.front().sink);
  rig.nodes.restore();
  require_each_once(lines, rig.reader.read());
}

TEST_CASE("a leader that stands still until another leads: each line is accepted when it was acknowledged") {
  NatsRig rig;
  NatsWitness witness;
  const auto carrier = rig.carrier();
  const int leader = rig.reader.leader();
  auto lines = make_lines(6000);
  hand_over_beside(*carrier, lines, [&](const Answered& answered) {
    rig.nodes.stop(leader);
    answered.await_more();
    rig.nodes.resume(leader);
  });
  require_acknowledged(lines, witness.acknowledged());
  warn_of_losses(rig.settings, lines, rig.reader.read());
}

TEST_CASE("lines wait while there is no quorum, and come once afterwards") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(3000);
  int accepted = 0;
  hand_over_beside(*carrier, lines, [&](const Answered& answered) {
    rig.nodes.kill(2);
    rig.nodes.kill(3);
    const int before = answered.accepted;
    answered.await_wait();
    accepted = answered.accepted - before;
    rig.nodes.restore();
  });
  // What a majority had is acknowledged, and no more.
  CHECK(accepted <= lines_in_flight);
  require_each_once(lines, rig.reader.read());
}

TEST_CASE("all servers are killed and started again, and every line is there once") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(3000);
  hand_over_beside(*carrier, lines, [&](const Answered& answered) {
    for (const int node : {1, 2, 3})
      rig.nodes.kill(node);
    answered.await_wait();
    rig.nodes.restore();
  });
  require_each_once(lines, rig.reader.read());
}

TEST_CASE("servers that are down at the start are no error, and lines wait for them") {
  NatsRig rig;
  for (const int node : {1, 2, 3})
    rig.nodes.kill(node);
  const auto carrier = rig.carrier();
  auto lines = make_lines(10);
  CHECK(hand_over_once(*carrier, lines[0]).verdict == delivery::Verdict::unavailable);
  rig.nodes.restore();
  hand_over(*carrier, lines);
  require_each_once(lines, rig.reader.read());
}

TEST_CASE("what was sent is unknown when the sink gives it up") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  for (const int node : {1, 2, 3})
    rig.nodes.stop(node);
  const auto line = make_lines(1)[0];
  carrier->submit(parcel_of(line, 5));
  carrier->cancel();
  const auto answers = carrier->take();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].id == 5);
  CHECK(answers[0].verdict == delivery::Verdict::unknown);
  CHECK(carrier->unfinished() == 0);
}

}  // namespace mailroom::test::nats_fault_test
