// The service: one thread with an event loop (libevent) that speaks with all clients. The only user of
// libevent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "submission/client_connection.hpp"
#include "submission/conversation.hpp"
#include "submission/door.hpp"
#include "submission/login_checks.hpp"
#include "submission/role_writer.hpp"
#include "submission/tls_server.hpp"

struct event_base;
struct event;
struct sockaddr;

namespace mailroom::submission {

/// The address of a client at a unix socket.
constexpr std::string_view local_client = "local";
/// Without the port.
std::string text_of_address(const sockaddr* address);

struct ServiceOptions {
  ServiceTerms terms{};
  DatabaseAccess database{};
  std::map<std::string, RoleTerms> roles{};
  RoleTerms other_roles{};
  std::size_t connections = 1000;
  std::size_t connections_per_address = 100;
  std::size_t memory = std::size_t{256} * 1024 * 1024;
  Milliseconds login_cache{300'000};
  TlsFiles tls{};  ///< empty: no TLS
};

/// What the service asks of the process around it.
struct ServiceSurroundings {
  int signal_fd = -1;  ///< readable when `signalled` wants to be called
  /// Returns true if the service has to stop.
  std::function<bool()> signalled{};
  /// Why no mail may be taken, if so.
  std::function<std::optional<Reply>()> closed{};
  std::function<void()> turned{};    ///< each second
  std::function<void()> stopping{};  ///< nothing may begin any more
  std::function<bool()> may_end{};   ///< false: something is not answered yet
};

/// What the service has done, for metrics and the log.
struct ServiceCounts {
  std::size_t connections = 0;
  std::size_t memory = 0;
  std::map<std::string, std::int64_t> accepted{};  ///< mails, by role
  std::map<int, std::int64_t> refusals{};          ///< of commands and mails, by the code of the reply
  std::int64_t logins = 0;
  std::int64_t commits = 0;
};

class Service {
 public:
  /// Throws Error(configuration) if the certificate cannot be used.
  Service(ServiceOptions options, std::vector<Door> doors, ServiceSurroundings around, Log& log);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Serves until it has to stop. Then no mail begins, what is being stored is answered, and the rest is told
  /// 421.
  void run();
  /// Takes a connection of `role`, with the socket, within run(): for turned() to call.
  void let_in(int fd, const std::string& role);
  /// What may change meanwhile: the certificate, limits, and the terms of roles. For signalled() to call.
  /// Throws as the constructor, and nothing has changed then.
  void reload(ServiceOptions options);
  /// Any thread may ask.
  ServiceCounts counts() const;

  // For what serves others in the same loop, within it.
  event_base* loop() const { return base_; }
  const TlsServer* tls() const { return tls_.get(); }
  RoleTerms terms_of(const std::string& role) const;
  std::optional<Reply> closed() const { return around_.closed ? around_.closed() : std::nullopt; }
  /// What its bodies have changed by; false if all are too many.
  bool hold(std::ptrdiff_t change);

 private:
  friend class ClientConnection;
  struct Listener;

  void listen(const Door& door);
  void accept(const Door& door, int fd, const std::string& peer);
  bool is_full(const std::string& peer) const;
  bool is_role_full(const std::string& role) const;
  bool has_writer(const std::string& role) const;
  bool is_over_limit(const std::string& role) const;
  void fulfil(ClientConnection& client, Conversation::Wish wish);
  RoleWriter& writer_of(const std::string& role);
  void tell(Verdict verdict);
  void take_verdicts();
  void give(const Verdict& verdict);
  void count(const Verdict& verdict);
  void tick();
  void end_slow_clients(TimePoint now);
  void end_idle_writers();
  void begin_stop();
  bool may_end() const;
  void drop(std::uint64_t id);
  /// A client has had its last word, and counts no more for its address: the next may come before it closes.
  void leave(const std::string& peer);

  ServiceOptions options_;
  std::vector<Door> doors_;
  ServiceSurroundings around_;
  Log& log_;
  ServiceAnswers answers_;
  std::unique_ptr<TlsServer> tls_;
  event_base* base_ = nullptr;
  std::vector<std::unique_ptr<Listener>> listeners_;
  event* verdicts_event_ = nullptr;
  event* tick_event_ = nullptr;
  event* signal_event_ = nullptr;
  std::map<std::uint64_t, std::unique_ptr<ClientConnection>> clients_;
  std::map<std::string, std::size_t> per_address_;
  std::uint64_t next_id_ = 1;
  std::size_t held_ = 0;
  std::optional<TimePoint> stopping_since_;
  std::multimap<TimePoint, Verdict> late_;  ///< to be given then
  std::map<std::string, TimePoint> over_limit_until_;
  std::atomic<std::int64_t> commits_{0};
  mutable std::mutex mutex_;  ///< of the next four
  ServiceCounts counts_;
  std::vector<Verdict> verdicts_;
  std::map<std::string, std::unique_ptr<RoleWriter>> writers_;
  std::unique_ptr<LoginChecks> logins_;  // last: its threads call the others
};

}  // namespace mailroom::submission
