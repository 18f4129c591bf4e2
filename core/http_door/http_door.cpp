// The thread of the loop speaks with clients; verdicts of the database come from other threads, and are given
// by this one.

#include "http_door/http_door.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <event2/event.h>
#include <event2/listener.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "api_keys/api_key.hpp"
#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "http_door/operations.hpp"
#include "submission/tls_server.hpp"

namespace mailroom::http_door {
namespace {

constexpr Milliseconds idle_writer{300'000};
constexpr Milliseconds known_for{60'000};
constexpr std::size_t most_known = 10'000;
constexpr std::size_t lookup_threads = 2;
constexpr std::size_t question_threads = 4;

/// New for each request without a key. Those of one time lie together in the index.
std::string own_key() {
  std::array<std::uint8_t, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw Error(ExitCode::failed, "no random bytes");
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()).time_since_epoch().count();
  return fmt::format("http:{:08x}:{}", seconds, hex_text(bytes));
}

/// What is behind `Bearer`, without blanks; nullopt for another scheme.
std::optional<std::string_view> bearer_of(std::string_view header) {
  constexpr std::string_view scheme = "bearer ";
  if (lower_case(header.substr(0, scheme.size())) != scheme) return std::nullopt;
  return trimmed(header.substr(scheme.size()));
}

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
  lookups_ = std::make_unique<Questions>(options_.database, lookup_threads);
  questions_ = std::make_unique<Questions>(options_.database, question_threads);
}

HttpDoor::~HttpDoor() {
  questions_.reset();
  lookups_.reset();
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
  auto connection =
      std::make_unique<HttpConnection>(*this, service_.loop(), id, fd, peer,
                                       options_.is_secure ? service_.tls() : nullptr, options_.most_body);
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
          .from = options_.from};
}

void HttpDoor::answer(HttpConnection& connection, const Answer& given, const std::string& more, bool ends) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.answers[given.status];
  }
  connection.answer(given, more, ends || is_stopping_);
}

void HttpDoor::refuse(HttpConnection& connection, const Fault& fault, bool ends) {
  const auto given = shape_.fault(fault);
  const auto& who = connection.credentials();
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

/// Before the body comes.
void HttpDoor::look_at_key(HttpConnection& connection) {
  auto& reader = connection.reader();
  const bool has_body = reader.has_body();
  const auto& request = reader.request();
  const auto refuse_head = [&](const Fault& fault) {
    if (!has_body) {
      reader.go_on(false);
      reader.take_request();
    }
    refuse(connection, fault, has_body);
  };
  if (is_stopping_) return refuse_head({Problem::unavailable, ""});
  if (service_.closed())
    return refuse_head({Problem::unavailable,
                        "This database is a copy or a standby, and takes no mail: nothing was stored"});
  const auto header = request.header("authorization");
  if (!header) return refuse_head({Problem::no_key, ""});
  const auto key = bearer_of(*header);
  if (!key || !api_keys::has_form(*key, shape_.key_prefix())) return refuse_head({Problem::bad_key, ""});
  const auto digest = hex_text(api_keys::digest_of(*key));
  const auto known = known_.find(digest);
  if (known != known_.end() && known->second.until > steady_now())
    return let_in(connection, known->second.credentials);
  const auto waits = begin_wait(connection);
  const bool is_asked =
      lookups_->ask([this, waits, digest, id = api_keys::id_of(*key)](KeyedSession& session) {
        auto found = session.find(digest);
        Verdict verdict{.request = waits, .is_about_key = true};
        if (std::holds_alternative<Away>(found)) {
          verdict.what = Fault{Problem::unavailable, ""};
        } else if (auto& credentials = std::get<std::optional<Credentials>>(found)) {
          credentials->id = id;
          verdict.credentials = std::move(credentials);
        } else {
          verdict.what = Fault{Problem::bad_key, ""};
        }
        tell(std::move(verdict));
      });
  if (is_asked) return;
  waiting_.erase(waits);
  refuse_head({Problem::unavailable, ""});
}

void HttpDoor::let_in(HttpConnection& connection, const Credentials& credentials) {
  connection.credentials() = credentials;
  const auto& request = connection.reader().request();
  const bool has_body = connection.reader().has_body();
  std::optional<Fault> fault;
  if (credentials.may_only_send && !shape_.is_sending(request.method, request.path)) {
    fault = Fault{Problem::sending_key, ""};
  } else if (const auto encoding = request.header("content-encoding");
             encoding && lower_case(*encoding) != "identity") {
    fault = Fault{Problem::encoded, ""};
  }
  if (!fault) return connection.go_on_with_body();
  if (!has_body) connection.reader().take_request();
  refuse(connection, *fault, has_body);
}

void HttpDoor::carry_out(HttpConnection& connection) {
  const auto credentials = *connection.credentials();
  const auto& request = connection.reader().request();
  const auto terms = service_.terms_of(credentials.role);
  const auto key = request.header("idempotency-key");
  auto read = key && !is_utf8(*key) ? std::variant<Operation, Fault>(Fault{
                                          Problem::bad_idempotency_key, "The idempotency key is not UTF-8."})
                                    : shape_.read(request,
                                                  {.senders = terms.senders,
                                                   .header_options = terms.header_options,
                                                   .may_only_send = credentials.may_only_send},
                                                  defaults());
  if (const auto* fault = std::get_if<Fault>(&read)) {
    refuse(connection, *fault);
    connection.reader().take_request();
    return;
  }
  connection.reader().take_request();
  auto& operation = std::get<Operation>(read);
  if (auto* wanted = std::get_if<Post>(&operation)) return post(connection, credentials, std::move(*wanted));
  const auto waits = begin_wait(connection);
  const bool is_asked =
      questions_->ask([this, waits, credentials, operation, defaults = defaults()](KeyedSession& session) {
        tell({.request = waits, .what = answer_to(operation, credentials, shape_, defaults, session)});
      });
  if (is_asked) return;
  waiting_.erase(waits);
  refuse(connection, {Problem::unavailable, ""});
}

void HttpDoor::post(HttpConnection& connection, const Credentials& credentials, Post wanted) {
  if (wanted.mails.empty()) return answer(connection, shape_.posted(wanted, {}), "", false);
  const auto waits = begin_wait(connection);
  writer_of(credentials.role).add(make_work(waits, credentials, std::move(wanted), own_key()));
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
  }
  if (found == connections_.end()) return;
  auto& connection = *found->second;
  connection.wait_for(0);
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
