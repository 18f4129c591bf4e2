// A wrong password is asked of PostgreSQL each time; a right one opens the session that will write the mails
// of its role.

#include "submission/login_checks.hpp"

#include <algorithm>
#include <array>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/threads.hpp"
#include "crypto/digest.hpp"

namespace mailroom::submission {
namespace {

std::array<std::uint8_t, crypto::digest_size> random_key() {
  std::array<std::uint8_t, crypto::digest_size> key{};
  if (RAND_bytes(key.data(), static_cast<int>(key.size())) != 1)
    crypto::throw_openssl_error("draw a random key");
  return key;
}

}  // namespace

KnownPasswords::KnownPasswords(Milliseconds kept) : kept_(kept), hmac_(random_key()) {}

crypto::Digest KnownPasswords::digest_of(const Login& login) {
  return hmac_.digest({login.role, std::string_view("\0", 1), login.password});
}

bool KnownPasswords::has(const Login& login, TimePoint now) {
  const auto found = known_.find(login.role);
  if (found == known_.end()) return false;
  if (found->second.until > now)
    return crypto::equal_in_constant_time(found->second.digest, digest_of(login));
  known_.erase(found);
  return false;
}

void KnownPasswords::keep(const Login& login, TimePoint now) {
  known_[login.role] = {digest_of(login), now + kept_};
}

std::optional<Milliseconds> GuessDelays::delay_of(const std::string& address, TimePoint now) {
  constexpr std::size_t most_addresses = 10'000;
  if (guesses_.size() > most_addresses) guesses_.clear();
  auto& guesses = guesses_[address];
  if (now - guesses.since > std::chrono::minutes(1)) guesses = {.count = 0, .since = now};
  if (++guesses.count > most_in_a_minute) return std::nullopt;
  return Milliseconds(1000 << std::min(guesses.count - 1, 2));
}

LoginChecks::LoginChecks(const DatabaseAccess& access, Milliseconds cache, Opened opened, Tell tell)
    : access_(access), opened_(std::move(opened)), tell_(std::move(tell)), known_(cache) {
  const BlockedSignals blocked;
  for (int i = 0; i < most_at_once; ++i)
    threads_.emplace_back([this] { work(); });
}

LoginChecks::~LoginChecks() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  arrived_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

void LoginChecks::check(std::uint64_t session, const std::string& peer, Login login) {
  Verdict verdict{.session = session};
  {
    const std::lock_guard lock(mutex_);
    if (known_.has(login, steady_now())) {
      verdict.logged_in = login.role;
    } else if (waiting_.size() >= most_waiting) {
      verdict.reply = replies::logins_full;
    } else {
      waiting_.push_back({session, peer, std::move(login)});
      arrived_.notify_one();
      return;
    }
  }
  tell_(std::move(verdict));
}

void LoginChecks::forget(const std::string& role) {
  const std::lock_guard lock(mutex_);
  known_.forget(role);
}

void LoginChecks::work() {
  for (;;) {
    Waiting waiting;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return has_ended_ || !waiting_.empty(); });
      if (has_ended_) return;
      waiting = std::move(waiting_.front());
      waiting_.pop_front();
    }
    auto verdict = verdict_of(waiting);
    OPENSSL_cleanse(waiting.login.password.data(), waiting.login.password.size());
    tell_(std::move(verdict));
  }
}

Verdict LoginChecks::verdict_of(const Waiting& waiting) {
  const auto& login = waiting.login;
  Verdict verdict{.session = waiting.session};
  auto session = std::make_unique<SubmissionSession>(access_, login.role, login.password);
  const auto problem = session->is_open() ? session->problem_of_role(true) : session->reply_to_failed_login();
  if (problem) {
    verdict.reply = *problem;
    if (problem->code != replies::wrong_password.code) return verdict;
    const std::lock_guard lock(mutex_);
    const auto wait = delays_.delay_of(waiting.peer, steady_now());
    if (!wait) verdict.reply = replies::too_many_logins;
    verdict.after = wait.value_or(Milliseconds(0));
    return verdict;
  }
  opened_(login, std::move(session));
  {
    const std::lock_guard lock(mutex_);
    known_.keep(login, steady_now());
  }
  verdict.logged_in = login.role;
  return verdict;
}

}  // namespace mailroom::submission
