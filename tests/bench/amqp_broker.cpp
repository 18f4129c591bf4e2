// A quorum queue of three members, by librabbitmq alone.

#include <array>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "bench/brokers.hpp"
#include "carriers/amqp/connection.hpp"
#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

const char* const amqp_address = "MAILROOM_TEST_RABBITMQ";
const char* const password_file = "MAILROOM_TEST_RABBITMQ_PASSWORD_FILE";
constexpr auto channel = amqp::AmqpConnection::channel;

amqp_bytes_t queue() {
  return amqp_cstring_bytes("mailroom");
}

amqp_table_entry_t number_entry(const char* name, std::uint64_t value) {
  amqp_table_entry_t entry{};
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_I64;
  entry.value.value.i64 = static_cast<std::int64_t>(value);
  return entry;
}

class AmqpBroker final : public Broker {
 public:
  AmqpBroker() { connect(); }

  void make_empty() override {
    amqp_table_entry_t type{};
    type.key = amqp_cstring_bytes("x-queue-type");
    type.value.kind = AMQP_FIELD_KIND_UTF8;
    type.value.value.bytes = amqp_cstring_bytes("quorum");
    require_soon("deleting the queue", [&] { amqp_queue_delete(state(), channel, queue(), 0, 0); });
    require_soon("making the queue", [&] {
      amqp_queue_declare(state(), channel, queue(), 0, 1, 0, 0, {1, &type});
    });
  }

  std::int64_t count() override {
    const auto* declared = amqp_queue_declare(state(), channel, queue(), 1, 1, 0, 0, amqp_empty_table);
    require_reply("counting the messages");
    return declared->message_count;
  }

  void publish(const std::vector<std::string>& lines) override {
    open_.clear();
    std::size_t sent = 0;
    while (sent < lines.size() || !open_.empty()) {
      while (sent < lines.size() && open_.size() < in_flight) {
        const auto& line = lines[sent];
        publish(line, ++sent);
        open_.insert(sent);
      }
      await_confirmation();
    }
  }

 private:
  amqp_connection_state_t state() const { return connection_->get(); }

  void connect() {
    config::Settings settings;
    settings.sink.to = std::getenv(amqp_address);
    settings.sink.password_file = std::getenv(password_file);
    settings.sink.timeout = std::chrono::seconds(30);
    carriers::BrokerFailure failure;
    connection_ = amqp::AmqpConnection::open_any(amqp::read_amqp_target(settings), failure);
    if (connection_ == nullptr) throw std::runtime_error("connecting: " + failure.text);
  }

  bool is_fine() const { return amqp_get_rpc_reply(state()).reply_type == AMQP_RESPONSE_NORMAL; }

  void require_reply(const std::string& what) const {
    if (!is_fine()) throw std::runtime_error(what + " failed");
  }

  /// The members of a queue may still be at work on what came before. A refusal closes the channel.
  template <typename Ask>
  void require_soon(const std::string& what, const Ask& ask) {
    const bool is_done = test::eventually([&] {
      ask();
      if (is_fine()) return true;
      connect();
      return false;
    });
    if (!is_done) throw std::runtime_error(what + " failed");
  }

  void publish(const std::string& line, std::uint64_t number) const {
    const auto id = message_id(number);
    std::array headers{number_entry("Mailroom-Batch", number), number_entry("Mailroom-Attempt", 1),
                       number_entry("Mailroom-Tokens", 10)};
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                        AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_APP_ID_FLAG;
    properties.content_type = amqp_cstring_bytes("application/json");
    properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
    properties.message_id = amqp::amqp_text(id);
    properties.app_id = amqp_cstring_bytes("mailroom");
    properties.headers = {static_cast<int>(headers.size()), headers.data()};
    const auto status = amqp_basic_publish(state(), channel, amqp_empty_bytes, queue(), 1, 0, &properties,
                                           amqp::amqp_text(line));
    if (status != AMQP_STATUS_OK) throw std::runtime_error("publishing: " + amqp::amqp_status_text(status));
  }

  void await_confirmation() {
    amqp_maybe_release_buffers(state());
    amqp_frame_t frame{};
    const auto status = amqp_simple_wait_frame(state(), &frame);
    if (status != AMQP_STATUS_OK) throw std::runtime_error("waiting: " + amqp::amqp_status_text(status));
    if (frame.frame_type == AMQP_FRAME_HEARTBEAT) return;
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
      throw std::runtime_error("a line was not stored");
    const auto* ack = static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
    const auto end = open_.upper_bound(ack->delivery_tag);
    open_.erase(ack->multiple != 0 ? open_.begin() : open_.find(ack->delivery_tag), end);
  }

  std::unique_ptr<amqp::AmqpConnection> connection_;
  std::set<std::uint64_t> open_;  ///< delivery tags, from 1 on
};

}  // namespace

BrokerKind amqp_kind() {
  return {.name = "amqp",
          .address = amqp_address,
          .settings = {{"MAILROOM_SINK_PASSWORD_FILE", password_file}},
          .connect = [] { return std::make_unique<AmqpBroker>(); }};
}

}  // namespace mailroom::bench
