#include "support/fake_queue.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include "db/errors.hpp"

namespace mailroom::test {
namespace {

constexpr int max_attempts = 20;
constexpr int max_calls = 1'000'000;

}  // namespace

/// The client's end of a session.
class FakeSession final : public QueueSession {
 public:
  FakeSession(FakeServer& server, int number) : server_(server), number_(number) {}
  ~FakeSession() override { server_.disconnect(number_, {}); }
  FakeSession(const FakeSession&) = delete;
  FakeSession& operator=(const FakeSession&) = delete;

  ClaimReply claim(const ClaimRequest& request) override {
    server_.claims_.push_back(request);
    server_.claim_times_.push_back(server_.environment_.now());
    const auto fault = server_.begin_call(Operation::claim, number_);
    const auto reply = server_.claim(number_, request);
    server_.end_call(fault, number_);
    return reply;
  }

  void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) override {
    const auto fault = server_.begin_call(Operation::fetch, number_);
    const auto tokens = server_.tokens_of(lease);
    server_.end_call(fault, number_);
    const auto now = server_.environment_.now();
    for (const auto& [id, expires] : tokens) {
      with_token_row(id, now < expires ? TokenState::due : TokenState::expired, each);
    }
  }

  bool can_claim_ahead(const ClaimReply& /*reply*/) override {
    return server_.claims_ahead != ClaimsAhead::never;
  }
  void begin_claim(const ClaimRequest& request) override {
    begun_ = [this, request] { return claim(request); };
    if (server_.claims_ahead == ClaimsAhead::after_fetch) return;
    try {
      begun_ = [reply = claim(request)] { return reply; };
    } catch (...) {
      begun_ = [error = std::current_exception()]() -> ClaimReply { std::rethrow_exception(error); };
    }
  }
  ClaimReply end_claim() override { return begun_(); }

  Notified take_notifications() override {
    const auto fault = server_.begin_call(Operation::take_notifications, number_);
    const auto heard =
        std::exchange(server_.sessions_[static_cast<std::size_t>(number_)].heard, Notified::no);
    server_.end_call(fault, number_);
    return heard;
  }

  bool arrange(Waking waking) override {
    const auto fault = server_.begin_call(Operation::arrange, number_);
    const bool answer = server_.arrange(number_, waking);
    server_.end_call(fault, number_);
    return answer;
  }

  void check_health() override {
    server_.end_call(server_.begin_call(Operation::check_health, number_), number_);
  }
  int socket() const override { return server_.first_socket_ + number_; }

 private:
  FakeServer& server_;
  int number_;
  std::function<ClaimReply()> begun_;
};

FakeServer::FakeServer(FakeEnvironment& environment)
    : environment_(environment),
      first_socket_(environment.add_sockets([this](std::size_t session) { return readable(session); })) {}

void FakeServer::add_tokens(int count, bool notify) {
  for (int i = 0; i < count; ++i) {
    commit_token(draw_token());
  }
  if (notify) this->notify();
}

std::int64_t FakeServer::draw_token() {
  open_.insert(++last_token_);
  if (is_somebody_polling()) silent_.insert(last_token_);
  return last_token_;
}

void FakeServer::commit_token(std::int64_t id, TimePoint expires) {
  waiting_[id] = expires;
  open_.erase(id);
}

void FakeServer::notify(Notified of) {
  for (auto& session : sessions_) {
    session.heard = std::max(session.heard, of);
  }
}

void FakeServer::add_abandoned(int tokens) {
  FakeBatch batch;
  for (int i = 0; i < tokens; ++i) {
    batch.tokens.push_back(draw_token());
    open_.erase(last_token_);
    taken_[last_token_] = TimePoint::max();
  }
  batch.holder = static_cast<int>(sessions_.size());
  sessions_.push_back({.is_connected = false, .ends = environment_.now()});
  batch.holds.push_back({batch.holder, environment_.now()});
  batches_[static_cast<std::int64_t>(batches_.size()) + 1] = batch;
}

std::unique_ptr<QueueSession> FakeServer::connect() {
  const auto fault = begin_call(Operation::connect, -1);
  sessions_.push_back({.begins = environment_.now()});
  const auto number = static_cast<int>(sessions_.size()) - 1;
  auto session = std::make_unique<FakeSession>(*this, number);
  end_call(fault, number);
  return session;
}

void FakeServer::go_away(Milliseconds duration) {
  away_until_ = environment_.now() + duration;
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    disconnect(static_cast<int>(i), {});
    sessions_[i].ends = std::min(*sessions_[i].ends, environment_.now());
  }
}

Fault FakeServer::begin_call(Operation operation, int session) {
  if (++calls_ > max_calls) throw std::logic_error("the collector loops without an end");
  const auto fault = on_call({operation, calls_, ++calls_of_[operation]});
  if (fault == Fault::lost_request) {
    if (session >= 0) disconnect(session, linger);
    throw ConnectionLost("the request was lost");
  }
  const bool refused = session < 0 ? environment_.now() < away_until_
                                   : !sessions_[static_cast<std::size_t>(session)].is_connected;
  if (refused) throw ConnectionLost("the server is down");
  return fault;
}

void FakeServer::end_call(Fault fault, int session) {
  if (fault == Fault::canceled) throw DatabaseError(ExitCode::failed, "canceling statement", "", "57014");
  if (fault != Fault::lost_reply) return;
  disconnect(session, linger);
  throw ConnectionLost("the reply was lost");
}

void FakeServer::disconnect(int session, Milliseconds after) {
  auto& ended = sessions_[static_cast<std::size_t>(session)];
  if (!std::exchange(ended.is_connected, false)) return;
  ended.ends = environment_.now() + after;
}

bool FakeServer::holds(int session) const {
  const auto& ends = sessions_[static_cast<std::size_t>(session)].ends;
  return !ends || environment_.now() < *ends;
}

bool FakeServer::readable(std::size_t session) const {
  const auto& asked = sessions_.at(session);
  return asked.heard != Notified::no || !asked.is_connected;
}

int FakeServer::open_batches() const {
  return static_cast<int>(std::count_if(batches_.begin(), batches_.end(),
                                        [](const auto& entry) { return entry.second.is_open(); }));
}

std::size_t FakeServer::due() const {
  return static_cast<std::size_t>(std::count_if(waiting_.begin(), waiting_.end(), [this](const auto& token) {
    return environment_.now() < token.second;
  }));
}

ClaimReply FakeServer::claim(int session, const ClaimRequest& request) {
  environment_.advance(claim_takes);
  if (!sessions_[static_cast<std::size_t>(session)].is_connected) {
    throw ConnectionLost("the server ended the session and its transaction");
  }
  ClaimReply reply;
  const auto abandoned = find_abandoned(session, request, reply);
  reply.receipt_void = request.receipt && !acknowledge(*request.receipt);
  if (abandoned != batches_.end()) {
    abandoned->second.holder = session;
    abandoned->second.holds.push_back({session, environment_.now()});
    reply.lease = Lease{abandoned->first, ++abandoned->second.attempt, request.queue};
    reply.size = static_cast<int>(abandoned->second.tokens.size());
    reply.more = true;
  } else if (request.limit > 0) {
    take(session, request, reply);
  }
  return reply;
}

bool FakeServer::arrange(int session, Waking waking) {
  auto& open_at_first = sessions_[static_cast<std::size_t>(session)].open_at_first;
  if (waking == Waking::stay_polling) {
    if (!is_somebody_polling()) polling_ = session;
    return polling_ == session;
  }
  if (waking == Waking::ask) {
    if (!open_at_first) open_at_first = open_;
    std::erase_if(*open_at_first, [this](std::int64_t id) { return !open_.contains(id); });
    return !open_at_first->empty();
  }
  open_at_first.reset();
  if (polling_ == session) polling_.reset();
  if (waking == Waking::drain) notify(Notified::drain);
  return true;
}

bool FakeServer::acknowledge(const Receipt& receipt) {
  const auto batch = batches_.find(receipt.lease.batch);
  if (batch == batches_.end() || batch->second.attempt != receipt.lease.attempt) return false;
  if (!batch->second.emitted) batch->second.emitted = receipt.counts;
  return true;
}

std::map<std::int64_t, FakeBatch>::iterator FakeServer::find_abandoned(int session,
                                                                       const ClaimRequest& request,
                                                                       ClaimReply& reply) {
  if (request.limit == 0) return batches_.end();
  for (auto batch = batches_.begin(); batch != batches_.end(); ++batch) {
    const Lease lease{batch->first, batch->second.attempt, request.queue};
    if (!batch->second.is_open() || (request.receipt && request.receipt->lease == lease)) continue;
    if (request.held == batch->first) continue;
    const bool gone = request.take_over && !holds(batch->second.holder);
    if (batch->second.holder != session && !gone) continue;
    if (batch->second.attempt < max_attempts) return batch;
    batch->second.dead = true;
    reply.dead = batch->first;
  }
  return batches_.end();
}

/// Like the claim's SQL: the window above the cursor, and late tokens below it, which get at least half of a
/// batch.
std::vector<std::int64_t> FakeServer::find_due(std::size_t limit, bool& capped, std::int64_t& last,
                                               Sight& sight) const {
  std::vector<std::int64_t> found;
  std::vector<std::int64_t> window;
  int read = 0;
  for (const auto& [id, expires] : waiting_) {
    if (id > cursor_ && (window.size() == limit || ++read > max_read)) break;
    if (id > cursor_) last = id;
    if (environment_.now() < expires) (id > cursor_ ? window : found).push_back(id);
  }
  capped = read > max_read;
  sight.last = last;
  const auto budget = std::max(limit - window.size(), (limit + 1) / 2);
  if (found.size() >= budget) {
    found.resize(budget);
    sight.last = found.back();
  }
  sight.count = window.size() + found.size();
  if (sight.count > limit) {
    window.resize(limit - found.size());
    last = window.empty() ? cursor_ : window.back();
  }
  found.insert(found.end(), window.begin(), window.end());
  return found;
}

void FakeServer::take(int session, const ClaimRequest& request, ClaimReply& reply) {
  const auto limit = static_cast<std::size_t>(request.limit);
  bool capped = false;
  auto last = cursor_;
  Sight sight;
  const auto due = find_due(limit, capped, last, sight);
  reply.last = sight.last;
  reply.more = due.size() >= limit || capped;
  const bool left = !reply.more && !request.partial;
  reply.pending = static_cast<int>(left ? sight.count : sight.count - due.size());
  if (left && !due.empty()) return;
  cursor_ = std::max(cursor_, last);
  for (const auto id : due) {
    taken_.insert(waiting_.extract(id));
  }
  const auto skipped = [&](const auto& token) {
    return token.first <= cursor_ && environment_.now() >= token.second;
  };
  std::erase_if(waiting_, skipped);
  if (due.empty()) return;
  const auto id = static_cast<std::int64_t>(batches_.size()) + 1;
  batches_[id] = FakeBatch{.tokens = due, .holder = session, .holds = {{session, environment_.now()}}};
  reply.lease = Lease{id, 1, request.queue};
  reply.size = static_cast<int>(due.size());
}

std::vector<std::pair<std::int64_t, TimePoint>> FakeServer::tokens_of(const Lease& lease) const {
  std::vector<std::pair<std::int64_t, TimePoint>> tokens;
  const auto& batch = batches_.at(lease.batch);
  if (batch.attempt != lease.attempt) return tokens;
  for (const auto id : batch.tokens) {
    tokens.emplace_back(id, taken_.at(id));
  }
  return tokens;
}

void with_token_row(std::int64_t id, TokenState state, const std::function<void(const TokenRow&)>& each) {
  const std::string login = "user" + std::to_string(id);
  const std::string email = login + "@test.example";
  Secret secret{};
  std::generate(secret.begin(), secret.end(), [value = static_cast<std::uint64_t>(id)]() mutable {
    value = value * 31 + 7;
    return static_cast<std::uint8_t>(value);
  });
  TokenRow row;
  row.id = id;
  row.secret = secret;
  row.code = "12345";
  row.expires_at = 1'900'000'000;
  row.created_at = 1'800'000'000;
  row.email = email;
  row.login = login;
  row.state = state;
  each(row);
}

}  // namespace mailroom::test
