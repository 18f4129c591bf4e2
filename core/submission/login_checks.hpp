// Asks PostgreSQL whether a password is right, by few threads, and remembers those that were: a mail client
// logs in for each mail.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "crypto/hmac.hpp"
#include "submission/conversation.hpp"
#include "submission/submission_session.hpp"
#include "submission/verdict.hpp"

namespace mailroom::submission {

/// What is known of right passwords: an HMAC of each, under a key of this process, for a while.
class KnownPasswords {
 public:
  explicit KnownPasswords(Milliseconds kept);
  bool has(const Login& login, TimePoint now);
  void keep(const Login& login, TimePoint now);
  void forget(const std::string& role) { known_.erase(role); }

 private:
  struct Known {
    crypto::Digest digest{};
    TimePoint until{};
  };
  crypto::Digest digest_of(const Login& login);

  Milliseconds kept_;
  crypto::Hmac hmac_;
  std::map<std::string, Known> known_;
};

/// How long a wrong password has to wait for its answer: 1 s, 2 s, 4 s, for those of one address within a
/// minute.
class GuessDelays {
 public:
  static constexpr int most_in_a_minute = 10;

  /// A wrong one came from `address`. nullopt: too many.
  std::optional<Milliseconds> delay_of(const std::string& address, TimePoint now);

 private:
  struct Guesses {
    int count = 0;
    TimePoint since{};
  };
  std::map<std::string, Guesses> guesses_;
};

class LoginChecks {
 public:
  /// Called by a thread of its own with a session of a role whose password was right.
  using Opened = std::function<void(const Login&, std::unique_ptr<SubmissionSession>)>;

  static constexpr std::size_t most_waiting = 64;
  static constexpr int most_at_once = 2;

  LoginChecks(const DatabaseAccess& access, Milliseconds cache, Opened opened, Tell tell);
  /// Answers none that waits.
  ~LoginChecks();
  LoginChecks(const LoginChecks&) = delete;
  LoginChecks& operator=(const LoginChecks&) = delete;

  /// Tells the verdict of the session: 235, 535 or 454, at once if the password is known.
  void check(std::uint64_t session, const std::string& peer, Login login);
  /// The next login of the role is asked of PostgreSQL.
  void forget(const std::string& role);

 private:
  struct Waiting {
    std::uint64_t session = 0;
    std::string peer{};
    Login login{};
  };

  void work();
  Verdict verdict_of(const Waiting& waiting);

  const DatabaseAccess access_;
  const Opened opened_;
  const Tell tell_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Waiting> waiting_;
  KnownPasswords known_;
  GuessDelays delays_;
  bool has_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mailroom::submission
