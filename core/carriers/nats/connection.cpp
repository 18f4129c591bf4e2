// Cuts libnats's callbacks off before their listener goes, and sorts the library's errors into faults.

#include "carriers/nats/connection.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <mutex>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "base/threads.hpp"

namespace mailroom::nats {

/// Leads from the library's callbacks to a listener, until that is gone. The library does not tell when it
/// has called back for the last time, which may be while the process exits, so links are never destroyed;
/// there is one for each connection that the library does not restore itself.
class NatsLink {
 public:
  static NatsLink* make(NatsListener* listener) {
    static auto& mutex = *new std::mutex;
    static auto& links = *new std::deque<NatsLink>;
    const std::lock_guard lock(mutex);
    links.emplace_back().listener_ = listener;
    return &links.back();
  }

  /// Returns when no callback runs any more.
  void cut() {
    const std::lock_guard lock(mutex_);
    listener_ = nullptr;
  }

  template <typename Call>
  void tell(Call call) {
    const std::lock_guard lock(mutex_);
    if (listener_ != nullptr) call(*listener_);
  }

 private:
  std::mutex mutex_;
  NatsListener* listener_ = nullptr;
};

namespace {

constexpr std::int64_t nats_server_timeout = 2000;  // ms
constexpr std::int64_t ping_interval = 1000;        // ms: a frozen server is noticed after two pings
constexpr std::int64_t reconnect_wait = 250;        // ms
constexpr std::int64_t api_timeout = 2000;          // ms
constexpr std::int64_t max_pending =
    8192;  // more than sink.in_flight allows, also after connections were lost

NatsLink& link_of(void* closure) {
  return *static_cast<NatsLink*>(closure);
}

/// Without the place in the library's source.
std::string without_place(std::string_view text) {
  if (!text.starts_with('(')) return std::string(text);
  const auto end = text.find("): ");
  return std::string(end == std::string_view::npos ? text : text.substr(end + 3));
}

std::string last_error_of(natsConnection* connection) {
  const char* text = nullptr;
  const auto status = natsConnection_GetLastError(connection, &text);
  if (text != nullptr && *text != '\0') return without_place(text);
  return status == NATS_OK ? "the connection was lost" : natsStatus_GetText(status);
}

void on_answer(jsCtx*, natsMsg* message, jsPubAck* ack, jsPubAckErr* error, void* closure) {
  link_of(closure).tell([&](NatsListener& listener) { listener.on_answer(message, ack, error); });
  natsMsg_Destroy(message);
}

void on_lost(natsConnection* connection, void* closure) {
  auto why = last_error_of(connection);
  link_of(closure).tell([&](NatsListener& listener) { listener.on_lost(std::move(why)); });
}

void on_back(natsConnection*, void* closure) {
  link_of(closure).tell([](NatsListener& listener) { listener.on_back(); });
}

void on_closed(natsConnection* connection, void* closure) {
  auto why = last_error_of(connection);
  link_of(closure).tell([&](NatsListener& listener) { listener.on_closed(std::move(why)); });
}

void on_error(natsConnection* connection, natsSubscription*, natsStatus, void* closure) {
  auto why = last_error_of(connection);
  link_of(closure).tell([&](NatsListener& listener) { listener.on_refused(std::move(why)); });
}

void require_ok(natsStatus status, const char* setting) {
  if (status == NATS_OK) return;
  throw Error(ExitCode::configuration,
              fmt::format("{} cannot be used: {}", setting, nats_error_text(status)));
}

using NatsOptions = std::unique_ptr<natsOptions, decltype(&natsOptions_Destroy)>;

void nats_set_servers(natsOptions* options, const NatsTarget& target) {
  std::vector<std::string> urls;
  std::vector<const char*> texts;
  for (const auto& server : target.url.servers)
    urls.push_back(fmt::format("nats://{}", server.address()));
  for (const auto& url : urls)
    texts.push_back(url.c_str());
  require_ok(natsOptions_SetServers(options, texts.data(), static_cast<int>(texts.size())), "sink.to");
  natsOptions_SetNoRandomize(options, true);
  // A server names others before TLS has begun: whoever is between us and it could name his own.
  natsOptions_SetIgnoreDiscoveredServers(options, true);
}

NatsOptions options_for(const NatsTarget& target, NatsLink* link) {
  natsOptions* made = nullptr;
  require_ok(natsOptions_Create(&made), "libnats");
  NatsOptions options(made, natsOptions_Destroy);
  nats_set_servers(made, target);
  natsOptions_SetName(made, "mailroom");
  natsOptions_SetTimeout(made, nats_server_timeout);
  natsOptions_SetMaxReconnect(made, -1);
  natsOptions_SetReconnectWait(made, reconnect_wait);
  natsOptions_SetReconnectJitter(made, reconnect_wait / 2, reconnect_wait / 2);
  natsOptions_SetPingInterval(made, ping_interval);
  natsOptions_SetMaxPingsOut(made, 2);
  natsOptions_SetWriteDeadline(made, nats_server_timeout);
  if (target.requires_tls) require_ok(natsOptions_SetSecure(made, true), "TLS");
  if (!target.ca_file.empty())
    require_ok(natsOptions_LoadCATrustedCertificates(made, target.ca_file.c_str()), "sink.ca_file");
  if (!target.url.user.empty())
    require_ok(natsOptions_SetUserInfo(made, target.url.user.c_str(), target.password.c_str()),
               "sink.password_file");
  if (!target.credentials_file.empty()) {
    require_ok(natsOptions_SetUserCredentialsFromFiles(made, target.credentials_file.c_str(), nullptr),
               "sink.credentials_file");
  }
  natsOptions_SetDisconnectedCB(made, on_lost, link);
  natsOptions_SetReconnectedCB(made, on_back, link);
  natsOptions_SetClosedCB(made, on_closed, link);
  natsOptions_SetErrorHandler(made, on_error, link);
  return options;
}

carriers::BrokerFailure nats_failure_of(natsStatus status) {
  carriers::BrokerFailure failure{carriers::BrokerFault::unreachable, nats_error_text(status)};
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
      failure.fault = carriers::BrokerFault::login;
      break;
    case NATS_SECURE_CONNECTION_WANTED:
    case NATS_SECURE_CONNECTION_REQUIRED:
      failure.fault = carriers::BrokerFault::tls;
      break;
    case NATS_SSL_ERROR:
      // libnats puts the number of OpenSSL's verification error before its text.
      failure.fault = failure.text.find("depth=") != std::string::npos ? carriers::BrokerFault::certificate
                                                                       : carriers::BrokerFault::tls;
      break;
    case NATS_ERR:
    case NATS_INVALID_ARG:
    case NATS_NOT_FOUND:
      // The file of the credentials is read at each connection.
      if (failure.text.find("file") != std::string::npos) failure.fault = carriers::BrokerFault::login;
      break;
    default:
      break;
  }
  return failure;
}

}  // namespace

std::string nats_error_text(natsStatus status) {
  natsStatus last = NATS_OK;
  const auto* text = nats_GetLastError(&last);
  return last == status && text != nullptr && *text != '\0' ? without_place(text)
                                                            : natsStatus_GetText(status);
}

NatsTarget read_nats_target(const config::Settings& settings) {
  NatsTarget target{.url = carriers::parse_broker_url(settings.sink.to, {{"nats", 4222}, {"tls", 4222}}),
                    .credentials_file = settings.sink.credentials_file,
                    .ca_file = settings.sink.ca_file};
  if (!target.url.path.empty()) {
    throw Error(ExitCode::configuration, "sink.to continues after its servers",
                "name the stream in sink.stream");
  }
  target.requires_tls = target.url.scheme == "tls" ||
                        !std::ranges::all_of(target.url.servers, &config::ServerAddress::is_loopback);
  if (!target.url.user.empty()) target.password = carriers::broker_password(settings);
  if (!target.credentials_file.empty()) {
    // The library reads the file itself, which may be root's alone.
    target.credentials_file = secret_path(target.credentials_file);
    constexpr auto content = "nsc writes such a file for a user: a JWT and a seed";
    const SecretFile file(target.credentials_file, {"credentials", "sink.credentials_file", "", content},
                          settings.signing.allow_readable_key);
    // libnats reports such a file as a server that cannot be reached.
    for (const auto* part : {"BEGIN NATS USER JWT", "BEGIN USER NKEY SEED"}) {
      if (file.text().find(part) != std::string_view::npos) continue;
      throw Error(
          ExitCode::configuration,
          fmt::format("the credentials file {} has no line {}", shown_text(target.credentials_file), part),
          content);
    }
  }
  return target;
}

NatsConnection::NatsConnection(NatsListener* listener) : link_(NatsLink::make(listener)) {}

std::unique_ptr<NatsConnection> NatsConnection::open(const NatsTarget& target, NatsListener* listener,
                                                     carriers::BrokerFailure& failure) {
  // The library's threads handle no signals.
  const BlockedSignals blocked;
  std::unique_ptr<NatsConnection> connection(new NatsConnection(listener));
  const auto options = options_for(target, connection->link_);
  auto status = natsConnection_Connect(&connection->connection_, options.get());
  if (status == NATS_OK) {
    jsOptions wanted;
    jsOptions_Init(&wanted);
    wanted.Wait = api_timeout;
    wanted.PublishAsync.MaxPending = max_pending;
    wanted.PublishAsync.AckHandler = ::mailroom::nats::on_answer;
    wanted.PublishAsync.AckHandlerClosure = connection->link_;
    status = natsConnection_JetStream(&connection->jetstream_, connection->connection_, &wanted);
  }
  failure = status == NATS_OK ? carriers::BrokerFailure{} : nats_failure_of(status);
  if (status != NATS_OK) connection.reset();
  return connection;
}

NatsConnection::~NatsConnection() {
  link_->cut();
  jsCtx_Destroy(jetstream_);
  natsConnection_Destroy(connection_);
}

std::string NatsConnection::server() const {
  std::string url(512, '\0');
  if (natsConnection_GetConnectedUrl(connection_, url.data(), url.size()) != NATS_OK) return {};
  url.resize(url.find('\0'));
  const auto at = url.rfind('@');
  const auto scheme = url.find("://");
  if (at != std::string::npos) return url.substr(at + 1);
  return scheme == std::string::npos ? url : url.substr(scheme + 3);
}

}  // namespace mailroom::nats
