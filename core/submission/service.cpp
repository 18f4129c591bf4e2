// Verdicts of the database come from other threads; they are given by the thread of the loop.

#include "submission/service.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <csignal>
#include <cstring>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/thread.h>
#include <openssl/rand.h>
#include <set>
#include <sys/socket.h>

#include "base/encoded_text.hpp"
#include "base/error.hpp"

namespace mailroom::submission {
namespace {

constexpr Milliseconds idle_writer{300'000};
constexpr Milliseconds last_words{5000};  ///< at a stop
/// How long a role that is over its limit is told so without asking the database.
constexpr Milliseconds limit_remembered{1000};

std::string without_line_end(std::string line) {
  line.resize(line.find_last_not_of("\r\n") + 1);
  return line;
}

std::string random_text() {
  std::array<std::uint8_t, 18> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw Error(ExitCode::failed, "no random bytes");
  return hex_text(bytes);
}

}  // namespace

std::string text_of_address(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, address, sizeof in6);
    inet_ntop(AF_INET6, &in6.sin6_addr, text.data(), text.size());
  } else {
    return std::string(local_client);
  }
  return text.data();
}

struct Service::Listener {
  Service* service;
  const Door* door;
  evconnlistener* listener = nullptr;

  ~Listener() {
    if (listener != nullptr) evconnlistener_free(listener);
  }
};

Service::Service(ServiceOptions options, std::vector<Door> doors, ServiceSurroundings around, Log& log)
    : options_(std::move(options)), doors_(std::move(doors)), around_(std::move(around)), log_(log) {
  if (!options_.tls.certificate.empty()) tls_ = std::make_unique<TlsServer>(options_.tls);
  options_.terms.has_tls = tls_ != nullptr;
  answers_ = {
      .terms_of = [this](const std::string& role) { return terms_of(role); },
      .closed = around_.closed,
      .is_over_limit = [this](const std::string& role) { return is_over_limit(role); },
      .refused =
          [this](const Reply& reply) {
            const std::lock_guard lock(mutex_);
            ++counts_.refusals[reply.code];
          },
      .hold = [this](std::ptrdiff_t change) { return hold(change); },
      .random = random_text,
      .now = [] { return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()); }};
  evthread_use_pthreads();
  base_ = event_base_new();
  if (base_ == nullptr) throw Error(ExitCode::failed, "cannot make an event loop");
  verdicts_event_ = event_new(
      base_, -1, EV_PERSIST, [](int, short, void* self) { static_cast<Service*>(self)->take_verdicts(); },
      this);
  tick_event_ = event_new(
      base_, -1, EV_PERSIST, [](int, short, void* self) { static_cast<Service*>(self)->tick(); }, this);
  const auto tell_me = [this](Verdict verdict) { tell(std::move(verdict)); };
  logins_ = std::make_unique<LoginChecks>(
      options_.database, options_.login_cache,
      [this, tell_me](const Login& login, std::unique_ptr<SubmissionSession> session) {
        const std::lock_guard lock(mutex_);
        auto& writer = writers_[login.role];
        if (writer) {
          writer->set_password(login.password);
        } else {
          writer = std::make_unique<RoleWriter>(options_.database, login, std::move(session), tell_me, log_,
                                                commits_);
        }
      },
      tell_me);
}

Service::~Service() {
  logins_.reset();
  clients_.clear();
  writers_.clear();
  listeners_.clear();
  for (auto* each : {verdicts_event_, tick_event_, signal_event_})
    if (each != nullptr) event_free(each);
  event_base_free(base_);
}

void Service::run() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const auto& door : doors_)
    listen(door);
  signal_event_ = event_new(
      base_, around_.signal_fd, EV_READ | EV_PERSIST,
      [](int, short, void* self) {
        auto* const service = static_cast<Service*>(self);
        if (service->around_.signalled() && !service->stopping_since_) service->begin_stop();
      },
      this);
  event_add(signal_event_, nullptr);
  const timeval second{.tv_sec = 1, .tv_usec = 0};
  event_add(tick_event_, &second);
  event_base_dispatch(base_);
}

void Service::listen(const Door& door) {
  auto listener = std::make_unique<Listener>(Listener{this, &door});
  listener->listener = evconnlistener_new(
      base_,
      [](evconnlistener*, evutil_socket_t fd, sockaddr* address, int, void* self) {
        const auto* at = static_cast<Listener*>(self);
        at->service->accept(*at->door, fd, text_of_address(address));
      },
      listener.get(), LEV_OPT_CLOSE_ON_EXEC, 0, door.fd);
  if (listener->listener == nullptr) throw Error(ExitCode::failed, "cannot listen at " + door.address.text());
  // Too many descriptors, as a rule: the next tick tries again.
  evconnlistener_set_error_cb(listener->listener,
                              [](evconnlistener* refused, void*) { evconnlistener_disable(refused); });
  listeners_.push_back(std::move(listener));
}

void Service::fulfil(ClientConnection& client, Conversation::Wish wish) {
  switch (wish) {
    case Conversation::Wish::start_tls:
      return client.start_tls(*tls_);
    case Conversation::Wish::log_in:
      return logins_->check(client.id(), client.peer(), client.conversation().take_login());
    case Conversation::Wish::store:
      if (stopping_since_)
        return client.conversation().refuse(replies::stopping, steady_now()), client.flush();
      return writer_of(client.conversation().role()).add(client.id(), client.conversation().take_mail());
    case Conversation::Wish::end:
    case Conversation::Wish::none:
      return;
  }
}

/// That of a role that has logged in, or of one that needs no login.
RoleWriter& Service::writer_of(const std::string& role) {
  const std::lock_guard lock(mutex_);
  auto& writer = writers_[role];
  if (!writer)
    writer = std::make_unique<RoleWriter>(
        options_.database, Login{role, ""}, nullptr, [this](Verdict verdict) { tell(std::move(verdict)); },
        log_, commits_);
  return *writer;
}

void Service::tell(Verdict verdict) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    count(verdict);
    is_first = verdicts_.empty();
    verdicts_.push_back(std::move(verdict));
  }
  if (is_first) event_active(verdicts_event_, EV_READ, 0);
}

void Service::count(const Verdict& verdict) {
  if (!verdict.message.empty()) ++counts_.accepted[verdict.role];
  if (!verdict.logged_in.empty()) ++counts_.logins;
}

void Service::take_verdicts() {
  std::vector<Verdict> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(verdicts_);
  }
  for (auto& verdict : all) {
    if (verdict.after.count() == 0) {
      give(verdict);
    } else {
      late_.emplace(steady_now() + verdict.after, std::move(verdict));
    }
  }
}

void Service::give(const Verdict& verdict) {
  if (!verdict.role.empty() && verdict.reply.code != 0)
    log_.info("refused a mail", {{"role", verdict.role}, {"reply", without_line_end(verdict.reply.line())}});
  if (verdict.reply.status == replies::over_limit.status && verdict.reply.code == replies::over_limit.code)
    over_limit_until_[verdict.role] = steady_now() + limit_remembered;
  const auto found = clients_.find(verdict.session);
  // It may have sent a whole mail and closed: what is stored stays stored, and nobody hears of it.
  if (found == clients_.end()) return;
  auto& client = *found->second;
  auto& conversation = client.conversation();
  const auto now = steady_now();
  if (verdict.reply.code != 0) {
    conversation.refuse(verdict.reply, now);
    if (verdict.reply.code == replies::wrong_password.code)
      log_.info("refused a login", {{"from", client.peer()}});
  } else if (verdict.logged_in.empty()) {
    conversation.stored(verdict.message, now);
  } else if (is_role_full(verdict.logged_in)) {
    conversation.refuse(replies::too_many_of_role, now);
  } else if (!has_writer(verdict.logged_in)) {
    // Its session and password have just gone, as nobody needed them.
    conversation.refuse(replies::database_away_for_login, now);
  } else {
    conversation.logged_in(verdict.logged_in, now);
  }
  if (stopping_since_) conversation.refuse(replies::stopping, now);
  client.flush();
  client.go_on();
}

void Service::tick() {
  const auto now = steady_now();
  while (!late_.empty() && late_.begin()->first <= now) {
    const auto verdict = std::move(late_.extract(late_.begin()).mapped());
    give(verdict);
  }
  end_slow_clients(now);
  end_idle_writers();
  for (const auto& listener : listeners_)
    evconnlistener_enable(listener->listener);
  {
    const std::lock_guard lock(mutex_);
    counts_.connections = clients_.size();
    counts_.memory = held_;
  }
  if (around_.turned) around_.turned();
  if (may_end()) event_base_loopbreak(base_);
}

/// With the session its password goes, so that nobody who is logged in may need it.
void Service::end_idle_writers() {
  std::set<std::string> needed;
  for (const auto& [id, client] : clients_)
    needed.insert(client->conversation().role());
  const std::lock_guard lock(mutex_);
  std::erase_if(writers_, [&](const auto& each) {
    const bool goes = !needed.contains(each.first) && each.second->is_idle_for(idle_writer);
    if (goes) logins_->forget(each.first);
    return goes;
  });
}

void Service::begin_stop() {
  stopping_since_ = steady_now();
  listeners_.clear();
  if (around_.stopping) around_.stopping();
  std::vector<std::uint64_t> handshaking;
  for (const auto& [id, client] : clients_) {
    if (client->is_handshaking()) handshaking.push_back(id);
    if (client->is_handshaking() || client->conversation().is_waiting()) continue;
    client->conversation().refuse(replies::stopping, *stopping_since_);
    client->flush();
  }
  for (const auto id : handshaking)
    drop(id);
}

/// What has been stored is also told, to whoever reads it.
bool Service::may_end() const {
  if (!stopping_since_ || (around_.may_end && !around_.may_end())) return false;
  const bool is_patient = steady_now() < *stopping_since_ + last_words;
  return std::ranges::none_of(clients_, [&](const auto& each) {
    return each.second->conversation().is_waiting() || (is_patient && each.second->has_output());
  });
}

void Service::reload(ServiceOptions options) {
  if (tls_ && !options.tls.certificate.empty()) tls_->load(options.tls);
  options.terms.has_tls = tls_ != nullptr;
  // Sessions and logins have those of the start.
  options.database = options_.database;
  options.login_cache = options_.login_cache;
  options_ = std::move(options);
}

ServiceCounts Service::counts() const {
  const std::lock_guard lock(mutex_);
  auto counts = counts_;
  counts.commits = commits_;
  return counts;
}

}  // namespace mailroom::submission
