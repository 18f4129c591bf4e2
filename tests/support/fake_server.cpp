// The sessions of the fake server, and the faults of their calls.

#include "support/fake_server.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>

#include "db/errors.hpp"

namespace mailroom::test {
namespace {

constexpr int max_calls = 1'000'000;

/// Calls `each` with the token, whose account is named after its id.
void with_token_row(std::int64_t id, const FakeToken& token, const FakeDelivery& earlier, TimePoint now,
                    const std::function<void(const claim::TokenRow&)>& each) {
  const std::string login = "user" + std::to_string(id);
  const std::string email = login + "@test.example";
  crypto::Secret secret{};
  std::generate(secret.begin(), secret.end(), [value = static_cast<std::uint64_t>(id)]() mutable {
    value = value * 31 + 7;
    return static_cast<std::uint8_t>(value);
  });
  claim::TokenRow row;
  row.id = id;
  row.action = token.action;
  row.secret = secret;
  row.code = "12345";
  row.expires_at = 1'900'000'000;
  row.created_at = 1'800'000'000;
  row.email = email;
  row.login = login;
  row.state = state_of(token, now);
  row.attempts = earlier.attempts;
  row.unknowns = earlier.unknowns;
  each(row);
}

}  // namespace

/// The client's end of a session.
class FakeSession final : public claim::QueueSession {
 public:
  FakeSession(FakeServer& server, int number) : server_(server), number_(number) {}
  ~FakeSession() override { server_.disconnect(number_, {}); }
  FakeSession(const FakeSession&) = delete;
  FakeSession& operator=(const FakeSession&) = delete;

  claim::ClaimReply claim(const claim::ClaimRequest& request) override {
    server_.claims_.push_back(request);
    server_.claim_times_.push_back(server_.environment_.now());
    const auto fault = server_.begin_call(ServerOperation::claim, number_);
    const auto reply = server_.claim(number_, request);
    server_.end_call(fault, number_);
    return reply;
  }

  void fetch(const claim::Lease& lease, const std::function<void(const claim::TokenRow&)>& each) override {
    const auto fault = server_.begin_call(ServerOperation::fetch, number_);
    const auto tokens = server_.tokens_of(lease);
    server_.end_call(fault, number_);
    const auto now = server_.environment_.now();
    for (const auto& [id, token] : tokens) {
      // As what comes with a row is read: the sink has those before.
      server_.end_call(server_.begin_call(ServerOperation::row, number_), number_);
      with_token_row(id, token, server_.earlier(number_, id), now, each);
    }
  }

  std::optional<claim::ClaimReply> fetch_and_claim(const claim::Lease& lease,
                                                   const std::function<void(const claim::TokenRow&)>& each,
                                                   const claim::NextClaim& next) override {
    if (server_.claims_ahead == ClaimsAhead::after_a_row) return fetch_then_claim(lease, each, next);
    const auto* const request = server_.claims_ahead == ClaimsAhead::never ? nullptr : next();
    if (request == nullptr) {
      fetch(lease, each);
      return std::nullopt;
    }
    auto claiming = std::async(std::launch::deferred, [&] { return claim(*request); });
    if (server_.claims_ahead == ClaimsAhead::before_fetch) claiming.wait();
    try {
      fetch(lease, each);
    } catch (...) {
      claiming.wait();
      throw;
    }
    return claiming.get();
  }

  /// A claim that fails is none.
  std::optional<claim::ClaimReply> fetch_then_claim(const claim::Lease& lease,
                                                    const std::function<void(const claim::TokenRow&)>& each,
                                                    const claim::NextClaim& next) {
    const claim::ClaimRequest* request = nullptr;
    fetch(lease, [&](const claim::TokenRow& row) {
      each(row);
      if (request == nullptr) request = next();
    });
    if (request == nullptr) return std::nullopt;
    try {
      return claim(*request);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  claim::Notified take_notifications() override {
    const auto fault = server_.begin_call(ServerOperation::take_notifications, number_);
    const auto heard = server_.take_notifications(number_);
    server_.end_call(fault, number_);
    return heard;
  }

  bool arrange(claim::Waking waking) override {
    const auto fault = server_.begin_call(ServerOperation::arrange, number_);
    const bool answer = server_.arrange(number_, waking);
    server_.end_call(fault, number_);
    return answer;
  }

  std::vector<std::int64_t> begin(const std::vector<claim::Lease>& leases,
                                  const std::vector<std::string>& sinks) override {
    server_.end_call(server_.begin_call(ServerOperation::begin, number_), number_);
    return QueueSession::begin(leases, sinks);
  }

  int release() override { return server_.release(); }

  void check_health() override {
    server_.end_call(server_.begin_call(ServerOperation::check_health, number_), number_);
  }
  int socket() const override { return server_.first_socket_ + number_; }

 private:
  FakeServer& server_;
  int number_;
};

FakeServer::FakeServer(FakeEnvironment& environment, const MakeFakeQueue& make_queue)
    : environment_(environment),
      first_socket_(environment.add_sockets([this](std::size_t session) { return readable(session); })) {
  const FakeQueue::Setup setup{tokens_, environment_, [this](int session) { return holds(session); }};
  queue_ = make_queue ? make_queue(setup) : std::make_unique<FakeQueue>(setup);
}

void FakeServer::add_tokens(int count, bool notify) {
  for (int i = 0; i < count; ++i) {
    commit_token(draw_token());
  }
  if (notify) this->notify();
}

std::int64_t FakeServer::draw_token() {
  const auto id = ++tokens_.last;
  tokens_.open.insert(id);
  if (is_somebody_polling()) silent_.insert(id);
  return id;
}

void FakeServer::commit_token(std::int64_t id, const FakeToken& token) {
  tokens_.committed[id] = token;
  tokens_.open.erase(id);
}

void FakeServer::notify(claim::Notified of, std::optional<int> except) {
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (static_cast<int>(i) != except) sessions_[i].heard.insert(of);
  }
}

void FakeServer::add_abandoned(int tokens) {
  std::vector<std::int64_t> ids;
  for (int i = 0; i < tokens; ++i) {
    ids.push_back(draw_token());
    commit_token(ids.back());
  }
  sessions_.push_back({.is_connected = false, .ends = environment_.now()});
  queue_->add_batch(sessions() - 1, ids);
}

std::unique_ptr<claim::QueueSession> FakeServer::connect(bool delivers) {
  const auto fault = begin_call(ServerOperation::connect, -1);
  sessions_.push_back({.delivers = delivers, .begins = environment_.now()});
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

ServerFault FakeServer::begin_call(ServerOperation operation, int session) {
  if (++calls_ > max_calls) throw std::logic_error("the collector loops without an end");
  const auto fault = on_call({operation, calls_, ++calls_of_[operation]});
  if (fault == ServerFault::lost_request) {
    if (session >= 0) disconnect(session, linger);
    throw db::ConnectionLost("the request was lost");
  }
  const bool refused = session < 0 ? environment_.now() < away_until_
                                   : !sessions_[static_cast<std::size_t>(session)].is_connected;
  if (refused) throw db::ConnectionLost("the server is down");
  return fault;
}

void FakeServer::end_call(ServerFault fault, int session) {
  if (fault == ServerFault::canceled)
    throw db::DatabaseError(ExitCode::failed, "canceling statement", "", "57014");
  if (fault != ServerFault::lost_reply) return;
  disconnect(session, linger);
  throw db::ConnectionLost("the reply was lost");
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
  return !asked.heard.empty() || !asked.is_connected;
}

int FakeServer::open_batches() const {
  return static_cast<int>(std::count_if(batches().begin(), batches().end(),
                                        [](const auto& entry) { return entry.second.is_open(); }));
}

claim::ClaimReply FakeServer::claim(int session, const claim::ClaimRequest& request) {
  environment_.advance(claim_takes);
  const auto& claimer = sessions_[static_cast<std::size_t>(session)];
  if (!claimer.is_connected) throw db::ConnectionLost("the server ended the session and its transaction");
  auto reply = queue_->claim(session, claimer.delivers, request);
  reply.is_idle = request.routine && !request.receipt && !reply.lease && tokens_.open.empty() &&
                  waiting() == 0 && open_batches() == 0;
  if (reply.is_idle) reply.released = release();
  return reply;
}

int FakeServer::release() {
  const auto due = scheduled_.upper_bound(environment_.now());
  const auto count = static_cast<int>(std::distance(scheduled_.begin(), due));
  scheduled_.erase(scheduled_.begin(), due);
  add_tokens(count, false);
  return count;
}

bool FakeServer::arrange(int session, claim::Waking waking) {
  auto& open_at_first = sessions_[static_cast<std::size_t>(session)].open_at_first;
  if (waking == claim::Waking::stay_polling) {
    if (!is_somebody_polling()) polling_ = session;
    return polling_ == session;
  }
  if (waking == claim::Waking::ask) {
    if (!open_at_first) open_at_first = tokens_.open;
    std::erase_if(*open_at_first, [this](std::int64_t id) { return !tokens_.open.contains(id); });
    return !open_at_first->empty();
  }
  open_at_first.reset();
  if (polling_ == session) polling_.reset();
  if (waking == claim::Waking::drain) notify(claim::Notified::drain, session);
  return true;
}

claim::Notified FakeServer::take_notifications(int session) {
  auto& heard = sessions_[static_cast<std::size_t>(session)].heard;
  for (const auto of : {claim::Notified::drain, claim::Notified::sinks, claim::Notified::queues}) {
    if (heard.erase(of) > 0) return of;
  }
  return std::exchange(heard, {}).empty() ? claim::Notified::no : claim::Notified::poll;
}

FakeDelivery FakeServer::earlier(int session, std::int64_t token) const {
  if (!sessions_[static_cast<std::size_t>(session)].delivers) return {};
  const auto delivery = queue_->deliveries().find(token);
  return delivery == queue_->deliveries().end() ? FakeDelivery{} : delivery->second;
}

std::map<std::int64_t, FakeToken> FakeServer::tokens_of(const claim::Lease& lease) const {
  std::map<std::int64_t, FakeToken> tokens;
  const auto& batch = batches().at(lease.batch);
  if (batch.attempt != lease.attempt) return tokens;
  for (const auto id : batch.tokens) {
    const auto token = tokens_.committed.find(id);
    if (token != tokens_.committed.end()) tokens.insert(*token);
  }
  return tokens;
}

}  // namespace mailroom::test
