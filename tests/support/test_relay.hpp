#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "support/test_certificate.hpp"

namespace mailroom::test {

/// Where a dialogue is: the server is about to answer this.
enum class RelayStep { greeting, ehlo, starttls, auth, mail, rcpt, data, body, end };

/// What a relay that offers CHUNKING does with BDAT.
enum class Chunks { none, taken, refused, read_as_commands };

struct RelayMoment {
  RelayStep step = RelayStep::greeting;
  int connection = 0;     ///< from 1
  int mail = 0;           ///< the last MAIL of this connection, from 1; 0 before
  std::string recipient;  ///< from RCPT on, without angle brackets
};

struct RelayAnswer {
  enum class Then { go_on, close, reset, hang };

  std::optional<std::string>
      text{};             ///< instead of the usual reply, without the last line end; empty: no reply
  Milliseconds delay{0};  ///< before the reply
  Then then = Then::go_on;
  bool has_line_end = true;  ///< false: half a line
  bool is_late = false;      ///< reply only when the client has sent something else, or has gone
  std::function<std::string()> unasked{};        ///< what to say after the reply, when this returns
  const TestCertificate* certificate = nullptr;  ///< at STARTTLS: instead of the relay's; must outlive it

  static RelayAnswer reply(std::string text, Then then = Then::go_on) {
    return {.text = std::move(text), .then = then};
  }
  static RelayAnswer nothing(Then then) { return {.text = "", .then = then}; }
};

/// A mail whose end the server has received, and has not refused.
struct TakenMail {
  int connection = 0;
  std::string from;     ///< the argument of MAIL, with its parameters
  std::string to;       ///< without angle brackets
  std::string message;  ///< without dot stuffing, with CRLF
  std::string user;     ///< who has authenticated
  bool encrypted = false;
};

/// An SMTP server on a free port of 127.0.0.1, in threads of the test. It answers as usual, except where
/// `play` says something else, and records what it has taken.
class TestRelay {
 public:
  struct Options {
    std::function<RelayAnswer(const RelayMoment&)> play{};  ///< called by several threads
    const TestCertificate* certificate = nullptr;           ///< must outlive the server
    bool implicit_tls = false;
    bool offers_starttls = false;
    std::string user{};  ///< offers AUTH, and knows this user
    std::string password{};
    bool offers_smtputf8 = false;
    bool offers_8bitmime = true;
    bool offers_pipelining = false;
    Chunks chunks = Chunks::none;
    std::string rset_reply = "250 ok";
    bool is_deaf_to_rset = false;
    bool forgets_input = false;         ///< throws away what has come when a message ends
    bool takes_empty_messages = false;  ///< answers 354 to DATA without a recipient
    std::string mechanisms = "PLAIN";   ///< that are offered, separated by blanks
    std::string works{};                ///< the one that lets the user in, if not each
    std::string token{};                ///< of XOAUTH2
    bool in_lower_case = false;         ///< the keywords of EHLO
    int port_on_second_address = 0;     ///< listens on 127.0.0.2 and this port, if not 0
  };

  explicit TestRelay(Options options);
  TestRelay() : TestRelay(Options{}) {}
  /// Ends all connections.
  ~TestRelay();
  TestRelay(const TestRelay&) = delete;
  TestRelay& operator=(const TestRelay&) = delete;

  int port() const { return port_; }
  /// `smtp://127.0.0.1:PORT`, as `user` if it is not empty.
  std::string url(const std::string& user = {}) const;
  std::vector<TakenMail> taken() const;
  /// Every line that clients have sent, except messages: `CONNECTION LINE`.
  std::vector<std::string> commands() const;
  int connections() const { return connections_; }
  /// How often the server has said something unasked.
  int unasked() const { return unasked_; }

  /// A play that gives `answer` at each `step`.
  static std::function<RelayAnswer(const RelayMoment&)> at(RelayStep step, RelayAnswer answer);
  /// A play that gives `answer` at `step` of the first mail of the first connection.
  static std::function<RelayAnswer(const RelayMoment&)> once(RelayStep step, RelayAnswer answer);

 private:
  friend class RelayConversation;

  void accept_clients();

  Options options_;
  int listener_ = -1;
  int stop_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> unasked_ = 0;
  mutable std::mutex mutex_;
  std::vector<TakenMail> taken_;
  std::vector<std::string> commands_;
  std::vector<std::thread> clients_;
  std::thread acceptor_;
};

}  // namespace mailroom::test
