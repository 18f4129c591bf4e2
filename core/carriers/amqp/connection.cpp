// Limits the time of each step: connection, handshake, heartbeat, and bytes that the server does not read.

#include "carriers/amqp/connection.hpp"

#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/error.hpp"

namespace mailroom::amqp {
namespace {

constexpr timeval amqp_connect_timeout{.tv_sec = 2, .tv_usec = 0};
constexpr timeval amqp_handshake_limit{.tv_sec = 5, .tv_usec = 0};
constexpr int amqp_heartbeat = 5;  // s: a silent server is given up after two
constexpr int frame_size = 131072;
constexpr amqp_channel_t other_channel = 2;
constexpr auto system_certificates = "/etc/ssl/certs/ca-certificates.crt";

std::string amqp_bytes_text(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

amqp_table_entry_t flag_entry(const char* name) {
  amqp_table_entry_t entry{};
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entry.value.value.boolean = 1;
  return entry;
}

AmqpRefusal amqp_reply_refusal(const amqp_rpc_reply_t& reply) {
  switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return {};
    case AMQP_RESPONSE_SERVER_EXCEPTION:
      return amqp_refusal_of(reply.reply);
    default:
      return {-1, amqp_status_text(reply.library_error)};
  }
}

carriers::BrokerFault fault_of_status(int status, const AmqpTarget& target) {
  switch (status) {
    case AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED:
    case AMQP_STATUS_SSL_PEER_VERIFY_FAILED:
      return carriers::BrokerFault::certificate;
    case AMQP_STATUS_SSL_ERROR:
    case AMQP_STATUS_SSL_CONNECTION_FAILED:
      return target.has_tls ? carriers::BrokerFault::tls : carriers::BrokerFault::unreachable;
    default:
      return carriers::BrokerFault::unreachable;
  }
}

carriers::BrokerFault fault_of_login(const AmqpRefusal& refusal) {
  switch (refusal.code) {
    case AMQP_ACCESS_REFUSED:
    case AMQP_NOT_ALLOWED:  // the virtual host
      return carriers::BrokerFault::login;
    case -1:
      return carriers::BrokerFault::unreachable;
    default:
      return refusal.code == AMQP_CONNECTION_FORCED ? carriers::BrokerFault::unreachable
                                                    : carriers::BrokerFault::refused;
  }
}

}  // namespace

AmqpRefusal amqp_refusal_of(const amqp_method_t& method) {
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(method.decoded);
    return {close->reply_code, amqp_bytes_text(close->reply_text)};
  }
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_channel_close_t*>(method.decoded);
    return {close->reply_code, amqp_bytes_text(close->reply_text)};
  }
  return {-1, fmt::format("the server sent an unexpected method, {:#x}", method.id)};
}

std::string amqp_status_text(int status) {
  return amqp_error_string2(status);
}

AmqpTarget read_amqp_target(const config::Settings& settings) {
  AmqpTarget target{.url = carriers::parse_broker_url(settings.sink.to, {{"amqp", 5672}, {"amqps", 5671}}),
                    .ca_file = settings.sink.ca_file,
                    .timeout = settings.sink.timeout};
  target.has_tls = target.url.scheme == "amqps";
  target.vhost = target.url.path.empty() ? "/" : target.url.path;
  if (!target.has_tls)
    carriers::require_loopback(target.url, "use amqps://, and port 5671 unless the server has another");
  if (target.has_tls && target.ca_file.empty()) target.ca_file = system_certificates;
  if (target.has_tls && !std::filesystem::exists(target.ca_file)) {
    throw Error(ExitCode::configuration,
                fmt::format("there is no file {} with trusted certificates", target.ca_file),
                "name one in sink.ca_file, or install ca-certificates");
  }
  if (target.url.user.empty()) {
    // The user and password of a fresh server, which it accepts from this host only.
    target.user = target.password = "guest";
    return target;
  }
  target.user = target.url.user;
  target.password = carriers::broker_password(settings);
  return target;
}

std::unique_ptr<AmqpConnection> AmqpConnection::open(const AmqpTarget& target,
                                                     const config::ServerAddress& server,
                                                     carriers::BrokerFailure& failure) {
  std::unique_ptr<AmqpConnection> connection(new AmqpConnection);
  connection->state_.reset(amqp_new_connection());
  connection->server_ = server.address();
  failure = connection->connect(target, server);
  if (failure.fault == carriers::BrokerFault::none) {
    const auto refusal = connection->log_in(target);
    if (refusal.code != 0) failure = {fault_of_login(refusal), refusal.text};
  }
  if (failure.fault != carriers::BrokerFault::none) connection.reset();
  return connection;
}

std::unique_ptr<AmqpConnection> AmqpConnection::open_any(const AmqpTarget& target,
                                                         carriers::BrokerFailure& failure) {
  carriers::BrokerFailure worst;
  for (const auto& server : target.url.servers) {
    auto connection = open(target, server, failure);
    if (connection != nullptr) return connection;
    failure.text = fmt::format("{}: {}", server.address(), failure.text);
    if (worst.fault == carriers::BrokerFault::none || (!worst.is_lasting() && failure.is_lasting()))
      worst = failure;
  }
  failure = worst;
  return nullptr;
}

carriers::BrokerFailure AmqpConnection::connect(const AmqpTarget& target,
                                                const config::ServerAddress& server) {
  auto* state = state_.get();
  auto* made = target.has_tls ? amqp_ssl_socket_new(state) : amqp_tcp_socket_new(state);
  if (made == nullptr) throw Error(ExitCode::failed, "librabbitmq makes no socket");
  if (target.has_tls) {
    if (amqp_ssl_socket_set_cacert(made, target.ca_file.c_str()) != AMQP_STATUS_OK) {
      throw Error(ExitCode::configuration, fmt::format("sink.ca_file cannot be used: {}", target.ca_file),
                  "it must have certificates in PEM");
    }
    amqp_ssl_socket_set_verify_peer(made, 1);
    amqp_ssl_socket_set_verify_hostname(made, 1);
    amqp_ssl_socket_set_ssl_versions(made, AMQP_TLSv1_2, AMQP_TLSvLATEST);
  }
  auto timeout = amqp_connect_timeout;
  const auto status = amqp_socket_open_noblock(made, server.host.c_str(), server.port, &timeout);
  if (status != AMQP_STATUS_OK) return {fault_of_status(status, target), amqp_status_text(status)};
  // A server that is low on disk reads no more; writing to it must not last for ever.
  const auto limit = static_cast<unsigned>(target.timeout.count());
  setsockopt(socket(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  return {};
}

AmqpRefusal AmqpConnection::log_in(const AmqpTarget& target) {
  auto* state = state_.get();
  auto timeout = amqp_handshake_limit;
  amqp_set_handshake_timeout(state, &timeout);
  amqp_set_rpc_timeout(state, &timeout);
  std::array capabilities{flag_entry("authentication_failure_close"), flag_entry("connection.blocked"),
                          flag_entry("publisher_confirms"), flag_entry("basic.nack")};
  std::array<amqp_table_entry_t, 2> properties{};
  properties[0].key = amqp_cstring_bytes("capabilities");
  properties[0].value.kind = AMQP_FIELD_KIND_TABLE;
  properties[0].value.value.table = {static_cast<int>(capabilities.size()), capabilities.data()};
  properties[1].key = amqp_cstring_bytes("connection_name");
  properties[1].value.kind = AMQP_FIELD_KIND_UTF8;
  properties[1].value.value.bytes = amqp_cstring_bytes("mailroom");
  const amqp_table_t table{static_cast<int>(properties.size()), properties.data()};
  auto refusal = amqp_reply_refusal(amqp_login_with_properties(state, target.vhost.c_str(), 0, frame_size,
                                                               amqp_heartbeat, &table, AMQP_SASL_METHOD_PLAIN,
                                                               target.user.c_str(), target.password.c_str()));
  if (refusal.code != 0) return refusal;
  amqp_channel_open(state, channel);
  refusal = amqp_reply_refusal(amqp_get_rpc_reply(state));
  if (refusal.code != 0) return refusal;
  amqp_confirm_select(state, channel);
  return amqp_reply_refusal(amqp_get_rpc_reply(state));
}

AmqpConnection::~AmqpConnection() {
  if (state_ == nullptr || socket() < 0) return;
  amqp_connection_close_t close{};
  close.reply_code = AMQP_REPLY_SUCCESS;
  close.reply_text = amqp_cstring_bytes("OK");
  timeval at_once{};
  amqp_send_method(state_.get(), 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
  amqp_set_rpc_timeout(state_.get(), &at_once);
}

std::string AmqpConnection::product() const {
  const auto* properties = amqp_get_server_properties(state_.get());
  std::string product;
  for (const auto* name : {"product", "version"}) {
    for (int i = 0; i < properties->num_entries; ++i) {
      const auto& entry = properties->entries[i];
      if (entry.value.kind != AMQP_FIELD_KIND_UTF8 || amqp_bytes_text(entry.key) != name) continue;
      product += (product.empty() ? "" : " ") + amqp_bytes_text(entry.value.value.bytes);
    }
  }
  return product.empty() ? "the server" : product;
}

template <typename Ask>
AmqpRefusal AmqpConnection::on_own_channel(Ask ask) {
  auto* state = state_.get();
  amqp_channel_open(state, other_channel);
  auto refusal = amqp_reply_refusal(amqp_get_rpc_reply(state));
  if (refusal.code != 0) return refusal;
  ask(state);
  refusal = amqp_reply_refusal(amqp_get_rpc_reply(state));
  // A refusal has closed the channel, and waits for a word of consent.
  if (refusal.code > 0) {
    amqp_channel_close_ok_t consent{};
    amqp_send_method(state, other_channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &consent);
  } else if (refusal.code == 0) {
    amqp_channel_close(state, other_channel, AMQP_REPLY_SUCCESS);
  }
  return refusal;
}

AmqpRefusal AmqpConnection::find_exchange(const std::string& name) {
  return on_own_channel([&](auto* state) {
    amqp_exchange_declare(state, other_channel, amqp_text(name), amqp_cstring_bytes("direct"), 1, 0, 0, 0,
                          amqp_empty_table);
  });
}

AmqpRefusal AmqpConnection::find_queue(const std::string& name) {
  return on_own_channel([&](auto* state) {
    amqp_queue_declare(state, other_channel, amqp_text(name), 1, 0, 0, 0, amqp_empty_table);
  });
}

AmqpRefusal AmqpConnection::compare_with_quorum_queue(const std::string& name) {
  amqp_table_entry_t type{};
  type.key = amqp_cstring_bytes("x-queue-type");
  type.value.kind = AMQP_FIELD_KIND_UTF8;
  type.value.value.bytes = amqp_cstring_bytes("quorum");
  return on_own_channel([&](auto* state) {
    amqp_queue_declare(state, other_channel, amqp_text(name), 0, 1, 0, 0, {1, &type});
  });
}

}  // namespace mailroom::amqp
