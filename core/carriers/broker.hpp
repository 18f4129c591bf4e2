// A broker, NATS or RabbitMQ: the URL of its cluster, what can be wrong with it, in the same words for both,
// and what their publishers have in common.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/threads.hpp"
#include "config/server_url.hpp"
#include "config/settings.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::carriers {

/// Reads the value of the setting `key` as parse_server_url() does.
config::ServerUrl parse_broker_url(std::string_view text, const std::vector<config::UrlScheme>& schemes,
                                   std::string_view key = "sink.to");

/// Throws Error(configuration) if a server is not on this host: lines hold tokens, and go over a network only
/// with TLS.
void require_loopback(const config::ServerUrl& url, const char* hint);

/// The password of the user that sink.to names. Throws Error(configuration).
std::string broker_password(const config::Settings& settings);

/// `text` with `{queue}` and `{action}` replaced.
std::string filled_name(std::string_view text, std::string_view queue, std::string_view action);

/// Why lines cannot be handed over to a broker.
enum class BrokerFault {
  none,
  unreachable,  ///< no connection, or no answer: may pass
  tls,          ///< the server does not offer TLS, or the handshake fails
  certificate,  ///< its certificate is not trusted, has expired, or is for another name
  login,        ///< it does not let the user in
  refused,      ///< it lets the user in, and then refuses what is asked of it
  missing,      ///< the stream, queue or exchange does not exist
};

struct BrokerFailure {
  BrokerFault fault = BrokerFault::none;
  std::string text{};  ///< what the library or the server says; without credentials

  /// True if somebody must change a setting, here or there.
  bool is_lasting() const { return fault != BrokerFault::none && fault != BrokerFault::unreachable; }
};

/// `broker.example:4222 does not let mailroom in: Authorization Violation`
std::string describe_failure(const std::string& server, const BrokerFailure& failure);

/// What to do about it.
std::string hint_for(BrokerFault fault);

/// Throws Error(configuration) for a failure that is lasting.
void require_usable(const std::string& server, const BrokerFailure& failure);

/// What is published, and where.
struct BrokerPublishing {
  std::string destination;   ///< the stream of NATS, the exchange of RabbitMQ
  std::string route;         ///< the subject, the routing key; with {queue} and {action}
  std::string event_source;  ///< of CloudEvents; empty for none
  Milliseconds timeout{};
};

/// What the carriers of lines to brokers have in common: answers come on another thread, and a thread of the
/// carrier connects anew.
class BrokerPublisher : public delivery::Carrier {
 public:
  std::vector<std::string> endpoints() const override { return {name_}; }
  int fd() const override { return ready_.fd(); }
  std::vector<delivery::Answer> take() override;
  std::size_t unfinished() const override { return unfinished_; }
  const std::string& name() const { return name_; }

 protected:
  BrokerPublisher(const config::ServerUrl& url, BrokerPublishing publishing);

  /// With mutex_ held.
  void answer(std::int64_t message, TimePoint since, delivery::Verdict verdict, int code, std::string reply);
  /// With mutex_ held: a message that must not leave yet.
  void give_back(std::int64_t message);
  /// How long the thread that connects waits once no server lets mailroom in: longer each time.
  Milliseconds next_pause();
  void reset_pause() { pause_ = {}; }

  const BrokerPublishing publishing_;
  std::size_t unfinished_ = 0;  ///< of the thread that submits and takes
  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< ended_, or what the carrier's thread waits for
  bool ended_ = false;
  std::string server_;   ///< of the connection, or the first one
  std::string trouble_;  ///< why lines cannot be taken

 private:
  std::string name_;
  EventFd ready_;
  std::vector<delivery::Answer> answers_;  ///< under mutex_
  Milliseconds pause_{};                   ///< of the thread that connects
};

}  // namespace mailroom::carriers
