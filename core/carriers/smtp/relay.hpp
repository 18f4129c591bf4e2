// A relay as the carrier and doctor see it: deliver, check, interrupt.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

#include "base/clock.hpp"
#include "carriers/smtp/access_token.hpp"
#include "config/server_url.hpp"
#include "delivery/answer.hpp"
#include "delivery/carrier.hpp"

namespace mailroom {

/// The sockets that one libcurl handle has open. Any thread may shut them down: a descriptor is closed and
/// shut down under one lock, so that none that the system has given to somebody else is ever touched.
class RelaySockets {
 public:
  /// Opens a socket; -1 if that fails, or while interrupted.
  int open(int family, int type, int protocol);
  int close(int socket);
  /// Sends a few bytes unless that would wait.
  void say(int socket, std::string_view bytes);

  /// Ends the connections.
  void shut_down();
  /// Nothing more is read from the connections: a wait for a reply ends at once.
  void end_reading();
  /// shut_down(), and opens no socket until resume().
  void interrupt();
  void resume() { interrupted_ = false; }
  bool interrupted() const { return interrupted_; }

 private:
  void shut_down_all(int how);

  std::mutex mutex_;
  std::vector<int> open_;
  std::atomic<bool> interrupted_ = false;
};

/// The last check before an address becomes part of an SMTP command: `local@domain`, at most 254 bytes,
/// without control characters and angle brackets, and without blanks, quotes and backslashes except in a
/// quoted local part. Only with `allow_utf8` may the local part be other than ASCII; the domain is always
/// ASCII.
bool is_envelope_address(std::string_view address, bool allow_utf8);

/// The last check before the data: true if the line ends are CRLF and there is no NUL, so that no relay can
/// see commands in the message.
bool is_transmittable(std::string_view message);

/// Where a relay listens, and as whom to authenticate.
struct RelayUrl : ServerAddress {
  bool implicit_tls = false;  ///< smtps://: TLS from the first byte
  std::string user{};         ///< empty: no authentication
  std::string profile{};      ///< whose relay it is; empty: that of send.relay

  bool operator==(const RelayUrl&) const = default;

  /// `relay.example:25`, or `relay.example:25 (acme)`: two profiles may log in there as different users.
  std::string name() const { return profile.empty() ? address() : address() + " (" + profile + ")"; }
};

/// Reads `smtp://user@host:587`, `smtps://host`, or several separated by commas. The port defaults to 25, or
/// to 465 for smtps. Throws Error(configuration) as parse_server_url() does.
std::vector<RelayUrl> parse_relay_urls(std::string_view text);

struct RelayOptions {
  std::string password;                   ///< for a relay whose URL names a user
  std::shared_ptr<TokenSource> tokens{};  ///< of that user, instead of a password
  std::string ca_file;     ///< PEM file of the only trusted certificates; empty: those of the system
  std::string hello_name;  ///< in EHLO, exactly so; empty: own_hello_name()
  /// For opening a connection, and for the reply to each command; 1 s or more, and exact to a second.
  Milliseconds timeout{30'000};
  /// For the reply to the end of the message, if longer than `timeout`. RFC 5321 asks for 10 minutes: a relay
  /// that is given up while it stores the mail delivers it, and the next attempt delivers it again.
  Milliseconds end_timeout{120'000};
  /// A connection that was idle for so long may be gone without notice, as some networks forget it.
  Milliseconds rest_time{1000};
  /// For the first reply over such a connection; then the mail goes over a fresh one.
  Milliseconds rested_timeout{3000};
  std::vector<std::string> resolve;       ///< `HOST:PORT:ADDRESS,...` instead of the system's addresses
  bool tls_on_loopback = false;           ///< require TLS of a loopback relay without a user too
  bool plaintext_for_tests = false;       ///< no TLS of a relay without a user, wherever it is
  std::vector<std::string> throttled_by;  ///< texts of replies that ask for a lower rate: `421 4.7.28`
};

/// Throws Error(configuration) unless `url` and `options` fit: a user needs a password, EHLO a name, and the
/// CA file must be readable.
void check_relay(const RelayUrl& url, const RelayOptions& options);

/// Why a relay takes no mail, as a check finds.
enum class RelayFault {
  none,
  unreachable,   ///< no connection: the name, the port or the network
  silent,        ///< a connection, and no greeting
  no_smtp,       ///< what greets speaks another protocol
  no_starttls,   ///< it offers no STARTTLS or refuses it, and TLS is required
  tls,           ///< the TLS handshake fails
  certificate,   ///< its certificate is not trusted, has expired, or is for another name
  no_auth,       ///< no AUTH, and a user is configured
  no_mechanism,  ///< it offers no mechanism that fits, or there is no access token
  login,         ///< AUTH is refused
  wants_login,   ///< no user is configured, and it wants one
  wants_tls,     ///< it wants TLS of a connection without
  busy,          ///< it takes no mail now, as it says
  no_smtputf8,   ///< it does not offer SMTPUTF8, which the sender needs
  sender,        ///< it refuses the sender
  refused,       ///< it refuses another command, or does not answer it
};

struct RelayCheck {
  RelayFault fault = RelayFault::none;
  int code = 0;       ///< of the relay's last reply; 0 if there was none
  std::string reply;  ///< its text, or why there was none: as Answer::reply
  bool encrypted = false;
  std::string hello_name;  ///< in EHLO
};

class RelayHandle;

/// Delivers mails over one kept connection, one after the other. Used by one thread, except interrupt().
class Relay {
 public:
  /// Throws Error(configuration) as check_relay(). Opens no connection yet.
  Relay(RelayUrl url, RelayOptions options);
  /// Says goodbye to the relay, and does not wait for its answer.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Delivers `mail`; takes as long as the relay does, within the time-outs. Where the connection was lost
  /// before the relay could have accepted the mail, tries once more on a fresh connection.
  Answer deliver(const Message& mail);

  /// Connects anew, with TLS and authentication as for a mail, and names the sender of `sample`, but no
  /// recipient. Without a sample it says NOOP. Takes as long as the relay does, within the time-outs.
  RelayCheck check(const Envelope* sample = nullptr);

  /// Ends the connection, as a mail may not come soon; the next one opens another.
  void rest();

  const RelayUrl& url() const;

  /// Ends deliver(), also each later one, until resume(). From any thread; returns at once.
  void interrupt();
  void resume();

 private:
  std::unique_ptr<RelayHandle> handle_;
};

}  // namespace mailroom
