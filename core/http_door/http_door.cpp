// The thread of the loop speaks with clients; verdicts of the database come from other threads, and are given
// by this one.

#include "http_door/http_door.hpp"

#include <algorithm>
#include <event2/event.h>
#include <event2/listener.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "submission/tls_server.hpp"

namespace mailroom::http_door {
namespace {

constexpr Milliseconds idle_writer{300'000};
constexpr Milliseconds known_for{60'000};
constexpr std::size_t most_known = 10'000;
constexpr std::size_t lookup_threads = 2;
constexpr std::size_t question_threads = 4;
constexpr std::size_t fetch_threads = 4;
constexpr std::int64_t most_told = 20;  ///< in the log, of a second's requests without a good key

/// The first word in backquotes: the field that a refusal is about.
std::string field_of(const std::string& message) {
  const auto begin = message.find('`');
  const auto end = begin == std::string::npos ? begin : message.find('`', begin + 1);
  return end == std::string::npos ? std::string() : message.substr(begin + 1, end - begin - 1);
}

}  // namespace

HttpDoor::HttpDoor(HttpOptions options, const Shape& shape, submission::Service& service, Log& log)
    : options_(std::move(options)), shape_(shape), service_(service), log_(log) {
  listener_ = evconnlistener_new(
      service_.loop(),
      [](evconnlistener*, evutil_socket_t fd, sockaddr* address, int, void* self) {
        static_cast<HttpDoor*>(self)->accept(fd, submission::text_of_address(address));
      },
      this, LEV_OPT_CLOSE_ON_EXEC, 0, options_.fd);
  if (listener_ == nullptr) throw Error(ExitCode::failed, "cannot listen for HTTP");
  // Too many descriptors, as a rule: the next turn tries again.
  evconnlistener_set_error_cb(listener_,
                              [](evconnlistener* refused, void*) { evconnlistener_disable(refused); });
  verdicts_event_ = event_new(
      service_.loop(), -1, EV_PERSIST,
      [](int, short, void* self) { static_cast<HttpDoor*>(self)->take_verdicts(); }, this);
  if (!options_.attachment_hosts.empty())
    fetches_ = std::make_unique<Questions>(options_.database, fetch_threads);
  lookups_ = std::make_unique<Questions>(options_.database, lookup_threads);
  questions_ = std::make_unique<Questions>(options_.database, question_threads);
}

HttpDoor::~HttpDoor() {
  questions_.reset();
  lookups_.reset();
  fetches_.reset();
  writers_.clear();
  connections_.clear();
  if (listener_ != nullptr) evconnlistener_free(listener_);
  event_free(verdicts_event_);
}

void HttpDoor::accept(int fd, const std::string& peer) {
  const auto found = per_address_.find(peer);
  const bool is_full = connections_.size() >= options_.connections ||
                       (peer != submission::local_client && found != per_address_.end() &&
                        found->second >= options_.connections_per_address);
  if (is_full) {
    ::close(fd);
    return;
  }
  if (peer != submission::local_client) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  const auto id = next_++;
  auto connection = std::make_unique<HttpConnection>(*this, service_.loop(), id, fd, peer,
                                                     options_.is_secure ? service_.tls() : nullptr,
                                                     options_.most_body, options_.timeout);
  if (connection->is_broken()) return;
  ++per_address_[peer];
  connections_[id] = std::move(connection);
}

void HttpDoor::drop(std::uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (const auto address = per_address_.find(found->second->peer());
      address != per_address_.end() && --address->second == 0)
    per_address_.erase(address);
  waiting_.erase(found->second->waits_for());
  connections_.erase(found);
}

std::uint64_t HttpDoor::begin_wait(HttpConnection& connection) {
  const auto request = next_++;
  connection.wait_for(request);
  waiting_[request] = connection.id();
  return request;
}

Defaults HttpDoor::defaults() const {
  return {.now = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()),
          .timezone = options_.timezone,
          .from = options_.from,
          .attachment_hosts = options_.attachment_hosts};
}

void HttpDoor::answer(HttpConnection& connection, const Answer& given, const std::string& more, bool ends) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.answers[given.status];
  }
  std::string headers = more;
  if (const auto& who = connection.credentials()) {
    if (const auto rate = rates_.find(who->role); rate != rates_.end())
      headers += rate_headers(rate->second, steady_now());
  }
  connection.answer(given, headers, ends || is_stopping_);
}

void HttpDoor::learn_rate(const std::string& role, const std::optional<RoleRate>& rate) {
  if (rate) {
    rates_[role] = *rate;
  } else {
    rates_.erase(role);
  }
}

void HttpDoor::refuse(HttpConnection& connection, const Fault& fault, bool ends) {
  const auto given = shape_.fault(fault);
  const auto& who = connection.credentials();
  if (const auto rate = who ? rates_.find(who->role) : rates_.end(); rate != rates_.end() && fault.wait)
    rate->second = used_up(rate->second, steady_now(), *fault.wait);
  // Whoever guesses keys fills no disk.
  const bool is_guess = fault.problem == Problem::no_key || fault.problem == Problem::bad_key;
  if (!is_guess || ++guesses_ <= most_told)
    log_.info("refused a request", {{"from", connection.peer()},
                                    {"key", who ? who->id : std::string()},
                                    {"role", who ? who->role : std::string()},
                                    {"status", given.status},
                                    {"field", field_of(fault.message)}});
  std::string more;
  if (fault.problem == Problem::no_such_method)
    more = fmt::format("Allow: {}\r\n", shape_.methods_of(connection.reader().request().path));
  if (fault.problem == Problem::unavailable || fault.problem == Problem::not_known)
    more = "Retry-After: 5\r\n";
  if (fault.wait) more = fmt::format("Retry-After: {}\r\n", fault.wait->count());
  answer(connection, given, more, ends);
}

void HttpDoor::happened(HttpConnection& connection, HttpReader::Event event) {
  switch (event) {
    case HttpReader::Event::head:
      return look_at_key(connection);
    case HttpReader::Event::whole:
      return carry_out(connection);
    case HttpReader::Event::malformed:
      return refuse(
          connection,
          {Problem::bad_request, fmt::format("The request is no HTTP: {}", connection.reader().problem())},
          true);
    case HttpReader::Event::too_large:
      return refuse(connection, {Problem::too_large, ""}, true);
    case HttpReader::Event::more:
      return;
  }
}

PostWriter& HttpDoor::writer_of(const std::string& role) {
  auto& writer = writers_[role];
  if (!writer)
    writer = std::make_unique<PostWriter>(
        WriterSetting{.access = options_.database,
                      .shape = shape_,
                      .tell = [this](Verdict verdict) { tell(std::move(verdict)); },
                      .log = log_,
                      .commits = commits_},
        role);
  return *writer;
}

void HttpDoor::tell(Verdict verdict) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = verdicts_.empty();
    verdicts_.push_back(std::move(verdict));
  }
  if (is_first) event_active(verdicts_event_, EV_READ, 0);
}

void HttpDoor::take_verdicts() {
  std::vector<Verdict> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(verdicts_);
  }
  for (auto& verdict : all)
    give(std::move(verdict));
}

void HttpDoor::give(Verdict verdict) {
  const auto waits = waiting_.find(verdict.request);
  // It may have sent a whole request and closed: what is stored stays stored, and nobody hears of it.
  const auto found = waits == waiting_.end() ? connections_.end() : connections_.find(waits->second);
  if (waits != waiting_.end()) waiting_.erase(waits);
  if (verdict.credentials) {
    if (known_.size() >= most_known) known_.clear();
    known_[verdict.credentials->digest] = {*verdict.credentials, steady_now() + known_for};
    learn_rate(verdict.credentials->role, verdict.rate);
  }
  if (verdict.is_about_files) --fetching_;
  if (found == connections_.end()) return;
  auto& connection = *found->second;
  connection.wait_for(0);
  if (verdict.fetched) return store_fetched(connection, std::move(*verdict.fetched));
  if (verdict.has_rate && connection.credentials()) learn_rate(connection.credentials()->role, verdict.rate);
  if (verdict.stored > 0 && connection.credentials()) {
    const std::lock_guard lock(mutex_);
    counts_.accepted[connection.credentials()->role] += static_cast<std::int64_t>(verdict.stored);
  }
  if (verdict.credentials) {
    let_in(connection, *verdict.credentials);
  } else if (const auto* fault = std::get_if<Fault>(&verdict.what)) {
    // It was good a while ago: the next request asks again.
    if (fault->problem == Problem::bad_key && connection.credentials())
      known_.erase(connection.credentials()->digest);
    const bool has_body = verdict.is_about_key && connection.reader().has_body();
    if (verdict.is_about_key && !has_body) connection.reader().take_request();
    refuse(connection, *fault, has_body);
  } else {
    answer(connection, std::get<Answer>(verdict.what), "", false);
  }
  connection.take();
}

void HttpDoor::turned() {
  const auto now = steady_now();
  if (const auto guesses = std::exchange(guesses_, 0); guesses > most_told)
    log_.warn("refused more requests without a good key", {{"requests", guesses - most_told}});
  std::vector<std::uint64_t> late;
  for (const auto& [id, connection] : connections_)
    if (connection->is_overdue(now)) late.push_back(id);
  for (const auto id : late)
    drop(id);
  std::erase_if(writers_, [](const auto& each) { return each.second->is_idle_for(idle_writer); });
  std::erase_if(known_, [&](const auto& each) { return each.second.until <= now; });
  if (!is_stopping_) evconnlistener_enable(listener_);
  const std::lock_guard lock(mutex_);
  counts_.connections = connections_.size();
}

void HttpDoor::stop() {
  is_stopping_ = true;
  evconnlistener_free(std::exchange(listener_, nullptr));
  std::vector<std::uint64_t> idle;
  for (const auto& [id, connection] : connections_)
    if (connection->is_idle()) idle.push_back(id);
  for (const auto id : idle)
    drop(id);
}

bool HttpDoor::may_end() const {
  return std::ranges::none_of(connections_, [](const auto& each) { return each.second->is_waiting(); });
}

HttpCounts HttpDoor::counts() const {
  const std::lock_guard lock(mutex_);
  auto counts = counts_;
  counts.commits = commits_;
  return counts;
}

}  // namespace mailroom::http_door
