// The half of AmqpPublisher that writes, in a thread: connects, publishes, and gives up what takes too long.

#include "carriers/amqp/publisher.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/threads.hpp"
#include "carriers/amqp/answer.hpp"
#include "carriers/cloud_event.hpp"

namespace mailroom::amqp {
namespace {

constexpr Milliseconds pause_after_failing{250};
constexpr int amqp_longest_poll = 1000;  ///< ms; often enough for heartbeats
constexpr std::size_t longest_routing_key = 255;

amqp_table_entry_t amqp_number_entry(const char* name, std::int64_t value) {
  amqp_table_entry_t entry{};
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_I64;
  entry.value.value.i64 = value;
  return entry;
}

/// Lives as long as `name` and `value`.
amqp_table_entry_t amqp_text_entry(const std::string& name, const std::string& value) {
  amqp_table_entry_t entry{};
  entry.key = amqp_text(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = amqp_text(value);
  return entry;
}

}  // namespace

AmqpPublisher::AmqpPublisher(AmqpTarget target, carriers::BrokerPublishing publishing)
    : carriers::BrokerPublisher(target.url, std::move(publishing)), target_(std::move(target)) {}

AmqpPublisher::~AmqpPublisher() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    // The write may hang.
    if (is_writing_) shutdown(socket_, SHUT_RDWR);
  }
  changed_.notify_all();
  wake_.signal();
  if (thread_.joinable()) thread_.join();
}

void AmqpPublisher::start(std::unique_ptr<AmqpConnection> connection, const std::string& why) {
  if (connection != nullptr) {
    use(std::move(connection));
  } else {
    trouble_ = why;
  }
  const BlockedSignals blocked;
  thread_ = std::thread([this] { work(); });
}

bool AmqpPublisher::has_session() const {
  const std::lock_guard lock(mutex_);
  return is_up_ && !is_blocked_ && !is_failing_;
}

void AmqpPublisher::submit(delivery::Message message) {
  ++unfinished_;
  const std::lock_guard lock(mutex_);
  const auto now = steady_now();
  if (!is_up_ || is_blocked_ || is_failing_) {
    answer(message.id, now, delivery::Verdict::unavailable, trouble_code_, trouble_);
  } else if (!message.is_cleared()) {
    give_back(message.id);
  } else if (size_limit_ > 0 && message.body.size() > size_limit_) {
    answer(message.id, now, delivery::Verdict::rejected, AMQP_PRECONDITION_FAILED,
           fmt::format("{} bytes are more than the server takes, {}", message.body.size(), size_limit_));
  } else {
    std::string body(message.body);
    waiting_.push_back({std::move(message), std::move(body)});
    if (waiting_.size() == 1) wake_.signal();
  }
}

void AmqpPublisher::cancel() {
  const std::lock_guard lock(mutex_);
  for (const auto& [tag, sent] : sent_)
    answer(sent.message, sent.at, delivery::Verdict::unknown, 0, "given up before the server confirmed it");
  sent_.clear();
  for (const auto& waiting : waiting_)
    answer(waiting.message.id, steady_now(), delivery::Verdict::unavailable, 0, "stopped");
  waiting_.clear();
}

bool AmqpPublisher::has_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void AmqpPublisher::work() {
  while (!has_ended()) {
    if (connection_ != nullptr || connect()) serve();
  }
  drop(0, "stopped");
}

bool AmqpPublisher::connect() {
  carriers::BrokerFailure failure;
  const auto& server = target_.url.servers[next_server_++ % target_.url.servers.size()];
  auto connection = AmqpConnection::open(target_, server, failure);
  if (connection != nullptr && !publishing_.destination.empty()) {
    const auto refusal = connection->find_exchange(publishing_.destination);
    if (refusal.code != 0) {
      failure = {carriers::BrokerFault::missing, refusal.text};
      connection.reset();
    }
  }
  if (connection != nullptr) {
    use(std::move(connection));
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    trouble_ = fmt::format("{}: {}", server.address(), failure.text);
    trouble_code_ = 0;
  }
  // Every server gets a chance before the next pause.
  if (next_server_ % target_.url.servers.size() == 0) pause(next_pause());
  return false;
}

void AmqpPublisher::use(std::unique_ptr<AmqpConnection> connection) {
  connection_ = std::move(connection);
  next_tag_ = 1;
  confirmed_some_ = false;
  returning_.clear();
  const std::lock_guard lock(mutex_);
  server_ = connection_->server();
  socket_ = connection_->socket();
  is_blocked_ = false;
  is_failing_ = false;
  is_up_ = true;
}

void AmqpPublisher::pause(Milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return ended_; });
}

void AmqpPublisher::serve() {
  wake_.clear();
  for (;;) {
    std::unique_lock lock(mutex_);
    if (waiting_.empty() || ended_) break;
    auto waiting = std::move(waiting_.front());
    waiting_.pop_front();
    if (is_blocked_ || is_failing_) {
      answer(waiting.message.id, steady_now(), delivery::Verdict::unavailable, 0, trouble_);
      continue;
    }
    lock.unlock();
    // What has come is read first: that the server is blocked, for example.
    if (!publish(waiting) || !read_frames()) return;
  }
  if (!read_frames()) return;
  expire();
  if (connection_ == nullptr) return;
  std::array<pollfd, 2> sources{{{connection_->socket(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}}};
  poll(sources.data(), sources.size(), amqp_longest_poll);
}

bool AmqpPublisher::publish(Waiting& waiting) {
  const auto& message = waiting.message;
  const auto key = carriers::filled_name(publishing_.route, message.queue, message.action);
  {
    const std::lock_guard lock(mutex_);
    const auto now = steady_now();
    if (key.size() > longest_routing_key) {
      answer(message.id, now, delivery::Verdict::unavailable, 0, "the routing key is longer than 255 bytes");
      return true;
    }
    sent_.emplace(next_tag_, Sent{message.id, message.message_id, waiting.body.size(), now});
    is_writing_ = true;
  }
  ++next_tag_;
  std::vector headers{amqp_number_entry("Mailroom-Batch", message.batch),
                      amqp_number_entry("Mailroom-Attempt", message.attempt),
                      amqp_number_entry("Mailroom-Tokens", static_cast<std::int64_t>(message.tokens.size()))};
  auto event = carriers::cloud_event_attributes(message, publishing_.event_source);
  for (auto& [name, value] : event) {
    name.insert(0, "cloudEvents_");
    headers.push_back(amqp_text_entry(name, value));
  }
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                      AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_APP_ID_FLAG;
  properties.content_type = amqp_cstring_bytes("application/json");
  properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
  properties.message_id = amqp_text(message.message_id);
  properties.app_id = amqp_cstring_bytes("mailroom");
  properties.headers = {static_cast<int>(headers.size()), headers.data()};
  constexpr amqp_boolean_t mandatory = 1;
  const auto status =
      amqp_basic_publish(connection_->get(), AmqpConnection::channel, amqp_text(publishing_.destination),
                         amqp_text(key), mandatory, 0, &properties, amqp_text(waiting.body));
  {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
  }
  if (status == AMQP_STATUS_OK) return true;
  drop(0, amqp_status_text(status));
  return false;
}

void AmqpPublisher::expire() {
  const auto until = steady_now() - publishing_.timeout;
  bool is_useless = false;
  bool is_failing = false;
  {
    const std::lock_guard lock(mutex_);
    while (!sent_.empty() && sent_.begin()->second.at < until) {
      const auto sent = std::move(sent_.begin()->second);
      sent_.erase(sent_.begin());
      answer(sent.message, sent.at, delivery::Verdict::unknown, 0, "the server did not confirm it in time");
      is_useless = is_useless || last_confirm_ < sent.at;
    }
    is_failing = is_failing_ && sent_.empty();
  }
  // Another server may have the quorum that this one does not see.
  if (is_useless) drop(0, "the server confirmed nothing in time");
  if (!is_failing || connection_ == nullptr) return;
  drop(0, amqp_not_stored);
  pause(pause_after_failing);
}

void AmqpPublisher::drop(int code, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    is_up_ = false;
    socket_ = -1;
    trouble_ = why;
    trouble_code_ = code;
    if (const auto limit = amqp_size_limit(why)) size_limit_ = *limit;
    for (const auto& [tag, sent] : sent_) {
      answer(sent.message, sent.at, judge_amqp_close(code, why, sent.size, confirmed_some_), code, why);
    }
    sent_.clear();
    for (const auto& waiting : waiting_)
      answer(waiting.message.id, steady_now(), delivery::Verdict::unavailable, code, why);
    waiting_.clear();
  }
  connection_.reset();
}

}  // namespace mailroom::amqp
