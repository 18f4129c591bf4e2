// What RabbitMQ answers: confirmations, returned messages and closed channels, which AmqpPublisher reads
// here.

#include "carriers/amqp/answer.hpp"

#include <fmt/format.h>
#include <sys/time.h>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "carriers/amqp/publisher.hpp"

// What the server says to a publisher.

namespace mailroom::amqp {
namespace {

// Reply codes of AMQP 0-9-1.
constexpr int access_refused = 403;
constexpr int not_found = 404;
constexpr int precondition_failed = 406;

std::string amqp_text_in(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

}  // namespace

std::optional<std::size_t> amqp_size_limit(std::string_view text) {
  constexpr std::string_view before = "max size ";
  const auto at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = text.substr(at + before.size());
  return parse_number<std::size_t>(number.substr(0, number.find_first_not_of("0123456789")));
}

delivery::Verdict judge_amqp_close(int code, std::string_view text, std::size_t size, bool confirmed_some) {
  if (code == precondition_failed) {
    const auto limit = amqp_size_limit(text);
    if (limit && size > *limit) return delivery::Verdict::rejected;
  }
  // Every line goes to the same exchange, so the first on this channel was refused, and none after it was
  // looked at.
  const bool refused_all = (code == access_refused || code == not_found) && !confirmed_some;
  return refused_all ? delivery::Verdict::unavailable : delivery::Verdict::unknown;
}

bool AmqpPublisher::read_frames() {
  for (;;) {
    amqp_maybe_release_buffers(connection_->get());
    amqp_frame_t frame{};
    timeval at_once{};
    const auto status = amqp_simple_wait_frame_noblock(connection_->get(), &frame, &at_once);
    if (status == AMQP_STATUS_TIMEOUT) return true;
    if (status != AMQP_STATUS_OK) {
      drop(0, amqp_status_text(status));
      return false;
    }
    if (!handle(frame)) return false;
  }
}

bool AmqpPublisher::handle(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) return handle_method(frame.payload.method);
  if (frame.frame_type == AMQP_FRAME_HEADER && frame.payload.properties.class_id == AMQP_BASIC_CLASS)
    note_return(*static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded));
  return true;
}

bool AmqpPublisher::handle_method(const amqp_method_t& method) {
  switch (method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto* ack = static_cast<const amqp_basic_ack_t*>(method.decoded);
      confirm(ack->delivery_tag, ack->multiple != 0, true);
      return true;
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* nack = static_cast<const amqp_basic_nack_t*>(method.decoded);
      confirm(nack->delivery_tag, nack->multiple != 0, false);
      return true;
    }
    case AMQP_BASIC_RETURN_METHOD: {
      const auto* message = static_cast<const amqp_basic_return_t*>(method.decoded);
      returning_ = fmt::format("{} {}: no queue takes routing key '{}' of exchange '{}'", message->reply_code,
                               amqp_text_in(message->reply_text), amqp_text_in(message->routing_key),
                               amqp_text_in(message->exchange));
      return true;
    }
    case AMQP_CONNECTION_BLOCKED_METHOD: {
      const auto* blocked = static_cast<const amqp_connection_blocked_t*>(method.decoded);
      const std::lock_guard lock(mutex_);
      is_blocked_ = true;
      trouble_ = "the server takes nothing now: " + amqp_text_in(blocked->reason);
      trouble_code_ = 0;
      return true;
    }
    case AMQP_CONNECTION_UNBLOCKED_METHOD: {
      const std::lock_guard lock(mutex_);
      is_blocked_ = false;
      return true;
    }
    case AMQP_CHANNEL_CLOSE_METHOD:
    case AMQP_CONNECTION_CLOSE_METHOD: {
      const auto refusal = amqp_refusal_of(method);
      drop(refusal.code, refusal.text);
      return false;
    }
    default:
      return true;
  }
}

void AmqpPublisher::confirm(std::uint64_t tag, bool multiple, bool is_stored) {
  confirmed_some_ = true;
  last_confirm_ = steady_now();
  reset_pause();
  const std::lock_guard lock(mutex_);
  const auto first = multiple ? sent_.begin() : sent_.lower_bound(tag);
  const auto end = sent_.upper_bound(tag);
  for (auto each = first; each != end; each = sent_.erase(each)) {
    const auto& sent = each->second;
    if (!sent.returned.empty()) {
      answer(sent.message, sent.at, delivery::Verdict::unavailable, AMQP_NO_ROUTE, sent.returned);
    } else if (is_stored) {
      answer(sent.message, sent.at, delivery::Verdict::accepted, 0, "confirmed");
    } else {
      is_failing_ = true;
      trouble_ = amqp_not_stored;
      trouble_code_ = 0;
      answer(sent.message, sent.at, delivery::Verdict::unavailable, 0, amqp_not_stored);
    }
  }
}

void AmqpPublisher::note_return(const amqp_basic_properties_t& properties) {
  const auto message_id = amqp_text_in(properties.message_id);
  const std::lock_guard lock(mutex_);
  for (auto& [tag, sent] : sent_) {
    if (sent.message_id == message_id) sent.returned = returning_;
  }
}

}  // namespace mailroom::amqp
