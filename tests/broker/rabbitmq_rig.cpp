#include "broker/rabbitmq_rig.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fmt/format.h>
#include <stdexcept>
#include <sys/time.h>
#include <thread>

#include "support/subprocess.hpp"
#include "support/test_consumer.hpp"

namespace mailroom::test {

using namespace std::chrono_literals;

namespace {

constexpr amqp_channel_t channel = amqp::AmqpConnection::channel;

bool is_fine(amqp::AmqpConnection& connection) {
  return amqp_get_rpc_reply(connection.get()).reply_type == AMQP_RESPONSE_NORMAL;
}

std::string text_in(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

RabbitmqReader::Read read_of(const amqp_message_t& message, bool is_again) {
  return {text_in(message.properties.message_id), text_in(message.body), is_again};
}

std::string described(const amqp_message_t& message) {
  const auto& properties = message.properties;
  auto text =
      fmt::format("id: {}, type: {}, mode: {}, app: {}", text_in(properties.message_id),
                  text_in(properties.content_type), properties.delivery_mode, text_in(properties.app_id));
  for (int i = 0; i < properties.headers.num_entries; ++i) {
    const auto& entry = properties.headers.entries[i];
    // The queue adds how often it has delivered it.
    if (text_in(entry.key).starts_with("Mailroom"))
      text += fmt::format(", {}: {}", text_in(entry.key), entry.value.value.i64);
    if (text_in(entry.key).starts_with("cloudEvents"))
      text += fmt::format(", {}: {}", text_in(entry.key), text_in(entry.value.value.bytes));
  }
  return text + "\n" + text_in(message.body);
}

/// The most messages that a consumer takes before they are acknowledged.
constexpr std::uint32_t most_consumed = 500;

/// Takes as many messages as there are, by a consumer: the servers agree on each message that a client gets
/// by itself, and write that to disk. False if one does not come.
bool consume(amqp_connection_state_t state, const std::string& name, std::uint32_t count,
             std::vector<RabbitmqReader::Read>& batch, std::uint64_t& tag) {
  if (count == 0) return true;
  // No more than these: what a consumer has is hidden from whoever looks whether the queue is empty.
  if (amqp_basic_qos(state, channel, 0, static_cast<std::uint16_t>(count), 0) == nullptr) return false;
  const auto* const made = amqp_basic_consume(state, channel, amqp::amqp_text(name), {}, 0, 0, 0, {});
  if (made == nullptr) return false;
  const auto consumer = text_in(made->consumer_tag);
  for (std::uint32_t i = 0; i < count; ++i) {
    amqp_envelope_t envelope{};
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    amqp_maybe_release_buffers(state);
    if (amqp_consume_message(state, &envelope, &limit, 0).reply_type != AMQP_RESPONSE_NORMAL) return false;
    batch.push_back(read_of(envelope.message, envelope.redelivered != 0));
    tag = envelope.delivery_tag;
    amqp_destroy_envelope(&envelope);
  }
  return amqp_basic_cancel(state, channel, amqp::amqp_text(consumer)) != nullptr;
}

}  // namespace

config::Settings rabbitmq_settings() {
  config::Settings settings;
  settings.sink.to = from_script("MAILROOM_TEST_RABBITMQ");
  settings.sink.password_file = from_script("MAILROOM_TEST_RABBITMQ_PASSWORD_FILE");
  settings.sink.routing_key = "{queue}";
  settings.sink.timeout = 60s;
  settings.collect.queues = {"mailroom"};
  return settings;
}

std::string rabbitmqctl(const std::string& arguments) {
  std::string text;
  for (const int node : {1, 2, 3}) {
    const auto command = fmt::format("MAILROOM_TEST_RABBITMQ_NODE=node{}@localhost {}/ctl {} 2>&1", node,
                                     from_script("MAILROOM_TEST_RABBITMQ_DIRECTORY"), arguments);
    auto* const pipe = popen(command.c_str(), "r");
    std::array<char, 4096> part{};
    text.clear();
    while (std::fgets(part.data(), part.size(), pipe) != nullptr)
      text += part.data();
    if (pclose(pipe) == 0) return text;
  }
  throw std::runtime_error(text);
}

void keep_rabbitmq_definitions() {
  rabbitmqctl("eval 'rpc:multicall(mnesia, sync_log, []).'");
  // The members of a quorum queue are written some seconds later, and nothing tells when.
  std::this_thread::sleep_for(15s);
}

int rabbitmq_leader(const std::string& name) {
  const auto text = rabbitmqctl("--quiet list_queues --no-table-headers name leader");
  const auto at = text.find(name + "\tnode");
  return at == std::string::npos ? 0 : text.at(at + name.size() + 5) - '0';
}

std::unique_ptr<amqp::AmqpConnection> RabbitmqReader::connect() {
  static auto target = amqp::read_amqp_target(rabbitmq_settings());
  std::unique_ptr<amqp::AmqpConnection> connection;
  carriers::BrokerFailure failure;
  eventually(
      [&] {
        // Another server each time: one that has just been started may not find the queue's leader yet.
        std::rotate(target.url.servers.begin(), target.url.servers.begin() + 1, target.url.servers.end());
        connection = amqp::AmqpConnection::open_any(target, failure);
        return connection != nullptr;
      },
      patience);
  if (connection == nullptr) throw std::runtime_error("the reader cannot connect: " + failure.text);
  return connection;
}

void RabbitmqReader::drop_queue(const std::string& name) {
  const bool is_gone = eventually([&] {
    const auto connection = connect();
    amqp_queue_delete(connection->get(), channel, amqp::amqp_text(name), 0, 0);
    return is_fine(*connection);
  });
  if (!is_gone) throw std::runtime_error("the queue does not go");
}

void RabbitmqReader::make_queue(const std::string& name, bool is_quorum, bool is_durable) {
  drop_queue(name);
  amqp_table_entry_t type{};
  type.key = amqp_cstring_bytes("x-queue-type");
  type.value.kind = AMQP_FIELD_KIND_UTF8;
  type.value.value.bytes = amqp_cstring_bytes(is_quorum ? "quorum" : "classic");
  const bool is_made = eventually([&] {
    const auto connection = connect();
    amqp_queue_declare(connection->get(), channel, amqp::amqp_text(name), 0, is_durable ? 1 : 0, 0, 0,
                       {1, &type});
    return is_fine(*connection);
  });
  if (!is_made) throw std::runtime_error("the queue does not come");
}

bool RabbitmqReader::read_all(amqp::AmqpConnection& connection, const std::string& name,
                              std::map<std::string, int>& found) {
  auto* const state = connection.get();
  for (;;) {
    amqp_maybe_release_buffers(state);
    const auto reply = amqp_basic_get(state, channel, amqp::amqp_text(name), 0);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) return false;
    if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return true;
    const auto got = *static_cast<amqp_basic_get_ok_t*>(reply.reply.decoded);
    amqp_message_t message{};
    if (amqp_read_message(state, channel, &message, 0).reply_type != AMQP_RESPONSE_NORMAL) return false;
    std::vector<Read> batch{read_of(message, got.redelivered != 0)};
    if (first_.empty()) first_ = described(message);
    amqp_destroy_message(&message);
    auto tag = got.delivery_tag;
    if (!consume(state, name, std::min(got.message_count, most_consumed), batch, tag)) return false;
    add(batch, found);
    amqp_basic_ack(state, channel, tag, 1);
  }
}

void RabbitmqReader::add(const std::vector<Read>& batch, std::map<std::string, int>& found) {
  const auto before = found;
  for (const auto& read : batch) {
    // What was read over a connection that broke comes again.
    if (read.is_again && before.contains(read.id)) continue;
    const auto line = read.body + "\n";
    if (++found[read.id] == 1) lines_once_ += line;
    lines_ += line;
  }
}

std::map<std::string, int> RabbitmqReader::read(const std::string& name,
                                                const std::function<void()>& revive) {
  first_.clear();
  lines_.clear();
  lines_once_.clear();
  std::map<std::string, int> found;
  // Members that have just been started may take several tries.
  const auto is_read_within = [&](std::chrono::seconds time) {
    return eventually([&] { return read_all(*connect(), name, found); }, time);
  };
  bool is_read = is_read_within(revive ? std::chrono::seconds(60) : patience);
  if (!is_read && revive) {
    revive();
    is_read = is_read_within(patience);
  }
  if (!is_read) throw std::runtime_error("the queue cannot be read");
  return found;
}

RabbitmqRig::RabbitmqRig() {
  static int queues = 0;
  queue = "mailroom" + std::to_string(++queues);
  settings.sink.routing_key = queue;
  restore();
  reader.make_queue(queue);
}

namespace {

/// How often a node has found the cluster divided, by its log.
int divisions(int node) {
  const auto directory = from_script("MAILROOM_TEST_RABBITMQ_DIRECTORY");
  return count(read_file(fmt::format("{}/node{}.log", directory, node)), "inconsistent_database");
}

void await_servers() {
  const auto target = amqp::read_amqp_target(rabbitmq_settings());
  for (const auto& server : target.url.servers) {
    carriers::BrokerFailure failure;
    // Its port opens when it has started.
    const bool is_up =
        eventually([&] { return amqp::AmqpConnection::open(target, server, failure) != nullptr; }, patience);
    if (!is_up) throw std::runtime_error("the cluster is not whole: " + failure.text);
  }
}

}  // namespace

void RabbitmqRig::restore() {
  static std::map<int, int> known;
  nodes.restore();
  await_servers();
  // Servers that were killed together may take the cluster for divided when they start. RabbitMQ stays so,
  // and its queues may answer nothing, until an operator restarts the one that says so.
  for (const int node : {1, 2, 3}) {
    while (known[node] < divisions(node)) {
      known[node] = divisions(node);
      nodes.kill(node);
      nodes.start(node);
      await_servers();
    }
  }
}

std::map<std::string, int> RabbitmqRig::read() {
  return reader.read(queue, [this] {
    WARN("the members of the queue have not found each other again: each server is restarted");
    for (const int node : {1, 2, 3}) {
      nodes.kill(node);
      nodes.start(node);
      await_servers();
    }
  });
}

}  // namespace mailroom::test
