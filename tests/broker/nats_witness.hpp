#pragma once

#include <nats/nats.h>
#include <set>
#include <string>
#include <vector>

#include "broker/handover_rig.hpp"
#include "config/settings.hpp"

namespace mailroom::test {

/// Sees what is published to the servers of a cluster, and what they answer: by a connection to each of them,
/// which is told what any other client of that server is told.
class NatsWitness {
 public:
  NatsWitness();
  ~NatsWitness();
  NatsWitness(const NatsWitness&) = delete;
  NatsWitness& operator=(const NatsWitness&) = delete;

  /// The ids of the messages that a server has acknowledged with a sequence.
  std::set<std::string> acknowledged() const;

 private:
  struct Seat {
    natsConnection* connection = nullptr;
    natsSubscription* published = nullptr;
    natsSubscription* answers = nullptr;
  };

  std::vector<Seat> seats_;
};

/// What mailroom promises whatever the servers do: each line is accepted in the end, and only since a server
/// has acknowledged it.
void require_acknowledged(const std::vector<TestLine>& lines, const std::set<std::string>& acknowledged);

/// Names the lines that the servers have acknowledged and lost, or stored again. `found` counts message ids.
void warn_of_losses(const config::Settings& settings, const std::vector<TestLine>& lines,
                    const std::map<std::string, int>& found);

}  // namespace mailroom::test
