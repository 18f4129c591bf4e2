// Faults of the connection between a collector and the server.

#include <fmt/format.h>

#include "fault/tcp_proxy.hpp"
#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

std::string through(const TcpProxy& proxy) {
  return fmt::format("host=127.0.0.1 port={} user=postgres", proxy.port());
}

/// A single collector, so that no batch is taken over: it acknowledges what it wrote in its next session.
Outcome cut_in_mid_reply(Cluster& cluster, const Plan& plan) {
  TcpProxy proxy(cluster.port());
  Trial trial(cluster, plan, {.collectors = 1, .writers = 3, .collectors_reach = through(proxy)});
  for (int round = 0; round < plan.rounds; ++round) {
    const int before = proxy.cuts();
    // Spread evenly over the setup of a session and the first batches, and densely over the start.
    const int span = round % 2 == 0 ? 9000 : 500;
    proxy.cut_after(span * round / plan.rounds + trial.draw(0, span / plan.rounds));
    trial.expect(eventually([&] { return proxy.cuts() > before; }), "a connection is cut");
  }
  return trial.finish(plan.rounds);
}

/// Neither end notices. Two other collectors reach the server directly, so that work continues.
Outcome half_open(Cluster& cluster, const Plan& plan) {
  TcpProxy proxy(cluster.port());
  Trial trial(cluster, plan, {.collectors = 1, .collectors_reach = through(proxy)});
  trial.crew().hire(trial.conninfo());
  trial.crew().hire(trial.conninfo());
  for (int round = 0; round < plan.rounds; ++round) {
    proxy.freeze();
    trial.pause(200, 1500);
    trial.expect(trial.crew().writes_again(), "the others continue");
    if (round % 2 == 0) {
      proxy.cut_all();
      trial.allow_repeats(trial.limit());
    }
    proxy.thaw();
    trial.pause(50, 200);
  }
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> network_faults() {
  return {{"connection cut in mid-reply", "nothing repeated by a single collector", 120, 6, cut_in_mid_reply},
          {"connection half open", "the others continue; one batch per cut may repeat", 12, 2, half_open}};
}

}  // namespace mailroom::test
