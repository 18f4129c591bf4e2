#pragma once

#include <map>
#include <nats/nats.h>
#include <sstream>
#include <string>

#include "broker/handover_rig.hpp"
#include "carriers/nats/carrier.hpp"

namespace mailroom::test {

struct StreamOptions {
  std::string name = "MAILROOM";
  std::string subjects = "mailroom.>";
  std::int64_t max_messages = -1;
  std::int32_t max_message_size = -1;
  int replicas = 3;
  bool in_memory = false;
  std::chrono::seconds duplicate_window{3600};
};

/// Throws for a call that has failed; `what` names it.
void require_ok(natsStatus status, const char* what);

/// A client that makes streams and reads them, by a connection of its own.
class NatsReader {
 public:
  NatsReader();
  ~NatsReader();
  NatsReader(const NatsReader&) = delete;
  NatsReader& operator=(const NatsReader&) = delete;

  void make_stream(const StreamOptions& options);
  void drop_stream(const std::string& name);
  /// The number of the node that leads the stream; 0 for none.
  int leader(const std::string& name = "MAILROOM");
  /// How often each message id is in the stream.
  std::map<std::string, int> read(const std::string& name = "MAILROOM");
  /// `Name: value` of each header of the first message, after its subject.
  std::string first_header(const std::string& name = "MAILROOM");
  /// The texts of all messages, each with a newline.
  std::string lines(const std::string& name = "MAILROOM");
  /// Waits until the stream has a leader, and all replicas are there.
  void await_stream(const std::string& name = "MAILROOM");

 private:
  natsConnection* connection_ = nullptr;
  jsCtx* jetstream_ = nullptr;
};

/// A cluster with a new stream, and settings that name both.
struct NatsRig {
  explicit NatsRig(const StreamOptions& options = {});

  std::unique_ptr<delivery::Carrier> carrier() { return nats::make_nats_carrier({settings, log, 1}); }

  std::ostringstream text;
  Log log{Log::Options{}, text};
  config::Settings settings;
  NatsReader reader;
  BrokerNodes nodes{from_script("MAILROOM_TEST_NATS_DIRECTORY")};
};

/// Hands lines over to the first server, kills it, and hands others over to the next one.
void hand_over_to_two_servers(NatsRig& rig);

/// What the settings need besides: for the cluster of `with-nats --secure` also its user.
config::Settings nats_settings();

}  // namespace mailroom::test
