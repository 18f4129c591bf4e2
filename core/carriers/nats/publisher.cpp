// Publishes asynchronously, and answers all that is in flight as unknown when the connection is lost.

#include "carriers/nats/publisher.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/threads.hpp"
#include "carriers/cloud_event.hpp"
#include "carriers/nats/answer.hpp"

namespace mailroom::nats {
namespace {

// JetStream recognises what it has by its id, so a line that was not answered is soon said again.
constexpr Milliseconds nats_longest_wait{5'000};

using NatsMessage = std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)>;
using NatsHeader = std::vector<std::pair<std::string, std::string>>;

NatsHeader nats_header_of(const delivery::Message& message, const std::string& event_source) {
  NatsHeader header{{"Nats-Msg-Id", message.message_id},
                    {"Content-Type", "application/json"},
                    {"Mailroom-Batch", std::to_string(message.batch)},
                    {"Mailroom-Attempt", std::to_string(message.attempt)},
                    {"Mailroom-Tokens", std::to_string(message.tokens.size())}};
  for (const auto& [name, value] : carriers::cloud_event_attributes(message, event_source))
    header.emplace_back("ce-" + name, carriers::cloud_event_header_value(value));
  if (!event_source.empty()) header.emplace_back("ce-datacontenttype", "application/json");
  return header;
}

/// The bytes that the server counts: header and text, with the header that names the stream.
std::size_t nats_size_of(const NatsHeader& header, const delivery::Message& message,
                         const std::string& stream) {
  constexpr std::string_view around = "NATS/1.0\r\n\r\n";
  constexpr std::string_view expected = "Nats-Expected-Stream: \r\n";
  auto size = around.size() + expected.size() + stream.size() + message.body.size();
  for (const auto& [key, value] : header)
    size += key.size() + value.size() + 4;
  return size;
}

NatsMessage nats_message_of(const NatsHeader& header, const delivery::Message& message,
                            const std::string& subject) {
  natsMsg* made = nullptr;
  const auto size = static_cast<int>(message.body.size());
  auto status = natsMsg_Create(&made, subject.c_str(), nullptr, message.body.data(), size);
  NatsMessage nats(made, natsMsg_Destroy);
  for (const auto& [key, value] : header) {
    if (status == NATS_OK) status = natsMsgHeader_Set(made, key.c_str(), value.c_str());
  }
  if (status != NATS_OK) nats.reset();
  return nats;
}

NatsJudgement judge_failed_publish(natsStatus status) {
  const auto text = nats_error_text(status);
  switch (status) {
    case NATS_MAX_PAYLOAD:
      return {delivery::Verdict::rejected, 0, text};
    case NATS_CONNECTION_CLOSED:
    case NATS_DRAINING:
    case NATS_TIMEOUT:  // too many wait for an answer
    case NATS_NO_MEMORY:
    case NATS_INSUFFICIENT_BUFFER:
    case NATS_INVALID_SUBJECT:
    case NATS_INVALID_ARG:
      return {delivery::Verdict::unavailable, 0, text};
    default:
      return {delivery::Verdict::unknown, 0, text};
  }
}

NatsAnswer nats_answer_of(const jsPubAck* ack, const jsPubAckErr* error) {
  if (ack != nullptr) return {NatsAnswer::Kind::stored, ack->Sequence, ack->Duplicate, 0, {}};
  NatsAnswer answer;
  if (error == nullptr || error->Err == NATS_TIMEOUT) return answer;
  answer.kind = error->Err == NATS_NO_RESPONDERS ? NatsAnswer::Kind::no_responders : NatsAnswer::Kind::error;
  answer.code = static_cast<int>(error->ErrCode);
  answer.text = error->ErrText != nullptr ? error->ErrText : natsStatus_GetText(error->Err);
  // Without a code it is not from JetStream.
  if (answer.kind == NatsAnswer::Kind::error && answer.code == 0) answer.kind = NatsAnswer::Kind::no_answer;
  return answer;
}

}  // namespace

NatsPublisher::NatsPublisher(NatsTarget target, carriers::BrokerPublishing publishing)
    : carriers::BrokerPublisher(target.url, std::move(publishing)), target_(std::move(target)) {}

NatsPublisher::~NatsPublisher() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (keeper_.joinable()) keeper_.join();
  connection_.reset();
}

carriers::BrokerFailure NatsPublisher::connect() {
  carriers::BrokerFailure failure;
  std::shared_ptr<NatsConnection> connection = NatsConnection::open(target_, this, failure);
  {
    const std::lock_guard lock(mutex_);
    connection_ = connection;
    if (connection_ == nullptr) trouble_ = failure.text;
    if (connection_ != nullptr) server_ = connection_->server();
  }
  const BlockedSignals blocked;
  keeper_ = std::thread([this] { keep_connected(); });
  return failure;
}

std::optional<NatsStream> NatsPublisher::read_stream() {
  const auto connection = usable_connection();
  if (connection == nullptr) return std::nullopt;
  return read_nats_stream(*connection, publishing_.destination);
}

void NatsPublisher::keep_connected() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (connection_ != nullptr && !is_closed_) {
      changed_.wait(lock);
      continue;
    }
    auto old = std::exchange(connection_, nullptr);
    is_closed_ = false;
    lock.unlock();
    old.reset();
    carriers::BrokerFailure failure;
    std::shared_ptr<NatsConnection> connection = NatsConnection::open(target_, this, failure);
    lock.lock();
    if (connection != nullptr) {
      connection_ = std::move(connection);
      server_ = connection_->server();
      reset_pause();
      continue;
    }
    trouble_ = failure.text;
    changed_.wait_for(lock, next_pause(), [this] { return ended_; });
  }
}

std::shared_ptr<NatsConnection> NatsPublisher::usable_connection() const {
  const bool is_usable = connection_ != nullptr && !is_closed_ && connection_->is_up();
  return is_usable ? connection_ : nullptr;
}

bool NatsPublisher::has_session() const {
  const std::lock_guard lock(mutex_);
  return usable_connection() != nullptr;
}

void NatsPublisher::submit(delivery::Message message) {
  ++unfinished_;
  std::shared_ptr<NatsConnection> connection;
  {
    const std::lock_guard lock(mutex_);
    connection = usable_connection();
    if (connection == nullptr) {
      const auto why = trouble_.empty() ? std::string("not connected") : trouble_;
      answer(message.id, steady_now(), delivery::Verdict::unavailable, 0, why);
      return;
    }
    if (!message.is_cleared()) return give_back(message.id);
  }
  publish(*connection, message);
}

void NatsPublisher::publish(NatsConnection& connection, const delivery::Message& message) {
  const auto subject = nats_subject(publishing_.route, message.queue, message.action);
  const Sent sent{message.id, subject, steady_now()};
  const auto header = nats_header_of(message, publishing_.event_source);
  const auto size = nats_size_of(header, message, publishing_.destination);
  const auto limit = static_cast<std::size_t>(natsConnection_GetMaxPayload(connection.get()));
  if (limit > 0 && size > limit) {
    const std::lock_guard lock(mutex_);
    // The server would close the connection.
    answer_line(sent, {delivery::Verdict::rejected, 0,
                       fmt::format("{} bytes are more than the server takes, {}", size, limit)});
    return;
  }
  auto nats = nats_message_of(header, message, subject);
  if (nats == nullptr) {
    const std::lock_guard lock(mutex_);
    answer_line(sent, {delivery::Verdict::unavailable, 0, "libnats makes no message"});
    return;
  }
  const auto* const key = nats.get();
  {
    const std::lock_guard lock(mutex_);
    sent_.emplace(key, sent);
  }
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = std::min(publishing_.timeout, nats_longest_wait).count();
  options.ExpectStream = publishing_.destination.c_str();
  auto* given = nats.release();
  const auto status = js_PublishMsgAsync(connection.jetstream(), &given, &options);
  nats.reset(given);
  if (status == NATS_OK) return;
  const std::lock_guard lock(mutex_);
  // Unless it was answered because the connection was lost.
  if (sent_.erase(key) > 0) answer_line(sent, judge_failed_publish(status));
}

void NatsPublisher::answer_line(const Sent& sent, NatsJudgement judgement) {
  answer(sent.message, sent.at, judgement.verdict, judgement.code, std::move(judgement.reply));
}

void NatsPublisher::answer_all(delivery::Verdict verdict, const std::string& why) {
  for (const auto& [message, sent] : sent_)
    answer_line(sent, {verdict, 0, why});
  sent_.clear();
}

void NatsPublisher::cancel() {
  const std::lock_guard lock(mutex_);
  answer_all(delivery::Verdict::unknown, "given up before JetStream answered");
}

void NatsPublisher::on_answer(const natsMsg* message, const jsPubAck* ack, const jsPubAckErr* error) {
  const std::lock_guard lock(mutex_);
  const auto found = sent_.find(message);
  // It was answered when the connection was lost.
  if (found == sent_.end()) return;
  const auto sent = std::move(found->second);
  sent_.erase(found);
  answer_line(sent, judge_nats_answer(nats_answer_of(ack, error), publishing_.destination, sent.subject));
}

void NatsPublisher::on_lost(std::string why) {
  const std::lock_guard lock(mutex_);
  answer_all(delivery::Verdict::unknown, why);
  trouble_ = std::move(why);
}

void NatsPublisher::on_back() {
  const std::lock_guard lock(mutex_);
  if (connection_ != nullptr) server_ = connection_->server();
}

void NatsPublisher::on_closed(std::string why) {
  {
    const std::lock_guard lock(mutex_);
    answer_all(delivery::Verdict::unknown, why);
    trouble_ = std::move(why);
    is_closed_ = true;
  }
  changed_.notify_all();
}

void NatsPublisher::on_refused(std::string why) {
  const std::lock_guard lock(mutex_);
  // `Permissions Violation for Publish to "mailroom.news.activation"`: it stored none of these.
  for (auto each = sent_.begin(); each != sent_.end();) {
    const bool is_meant = why.find(fmt::format("\"{}\"", each->second.subject)) != std::string::npos;
    if (is_meant) answer_line(each->second, {delivery::Verdict::unavailable, 0, why});
    each = is_meant ? sent_.erase(each) : std::next(each);
  }
}

}  // namespace mailroom::nats
