// libmicrohttpd reads the requests. It takes a socket that listens, so that the messages about addresses are
// ours.

#include "process/http_listener.hpp"

#include <array>
#include <memory>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"

namespace mailroom::process {
namespace {

/// A request whose body is being read.
struct OpenCall {
  HttpCall call;
  TimePoint since = steady_now();
  bool is_too_long = false;
};

MHD_Result add_header(void* call, MHD_ValueKind, const char* name, const char* value) {
  static_cast<HttpCall*>(call)->headers.emplace(lower_case(name),
                                                value == nullptr ? std::string() : trimmed(value));
  return MHD_YES;
}

MHD_Result add_argument(void* call, MHD_ValueKind, const char* name, const char* value) {
  static_cast<HttpCall*>(call)->query.emplace(name, value == nullptr ? "" : value);
  return MHD_YES;
}

/// Empty for a unix socket.
std::string peer_of(MHD_Connection* connection) {
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (info == nullptr || info->client_addr == nullptr) return {};
  const auto* const address = info->client_addr;
  std::array<char, NI_MAXHOST> text{};
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return {};
  const auto size =
      static_cast<socklen_t>(address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  const bool is_known = getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  return is_known ? text.data() : "";
}

MHD_Result respond(MHD_Connection* connection, const HttpPage& page, const char* methods) {
  auto text = page.text;
  auto* response = MHD_create_response_from_buffer(text.size(), text.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", page.type);
  MHD_add_response_header(response, "Cache-Control", "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Connection", "close");
  for (const auto& [name, value] : page.headers)
    MHD_add_response_header(response, name.c_str(), value.c_str());
  if (page.status == 405) MHD_add_response_header(response, "Allow", methods);
  const auto queued = MHD_queue_response(connection, static_cast<unsigned>(page.status), response);
  MHD_destroy_response(response);
  return queued;
}

/// Called when the head has come, then for each piece of the body, then at its end.
MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                      const char*, const char* bytes, std::size_t* size, void** state) noexcept {
  const auto& listener = *static_cast<const HttpListener*>(self);
  const auto longest = listener.options().longest_body;
  const auto* const methods = listener.options().methods;
  if (*state == nullptr) {
    auto open = std::make_unique<OpenCall>();
    open->call.method = method;
    open->call.path = path;
    open->call.peer = peer_of(connection);
    MHD_get_connection_values(connection, MHD_HEADER_KIND, add_header, &open->call);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, &open->call);
    if (longest == 0) return respond(connection, listener.answer(open->call), methods);
    *state = open.release();
    return MHD_YES;
  }
  auto& open = *static_cast<OpenCall*>(*state);
  if (*size > 0) {
    if (steady_now() - open.since > HttpListener::body_patience) return MHD_NO;
    open.is_too_long = open.is_too_long || open.call.body.size() + *size > longest;
    if (!open.is_too_long) open.call.body.append(bytes, *size);
    *size = 0;
    return MHD_YES;
  }
  if (open.is_too_long)
    return respond(connection, {.status = 413, .text = "the body is too long\n"}, methods);
  return respond(connection, listener.answer(open.call), methods);
}

void on_end(void*, MHD_Connection*, void** state, MHD_RequestTerminationCode) noexcept {
  const std::unique_ptr<OpenCall> open(static_cast<OpenCall*>(*state));
  *state = nullptr;
}

}  // namespace

std::string_view HttpCall::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

HttpListener::HttpListener(const config::ListenAddress& address, const Options& options, HttpHandler handler)
    : socket_(address, options.words), options_(options), handler_(std::move(handler)) {
  const BlockedSignals blocked;
  daemon_ = MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC, 0,
                             nullptr, nullptr, on_request, this, MHD_OPTION_LISTEN_SOCKET, socket_.fd(),
                             MHD_OPTION_NOTIFY_COMPLETED, on_end, nullptr, MHD_OPTION_CONNECTION_LIMIT,
                             most_clients, MHD_OPTION_CONNECTION_TIMEOUT,
                             static_cast<unsigned>(options.patience.count()),
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, longest_head, MHD_OPTION_END);
  if (daemon_ == nullptr)
    throw Error(ExitCode::failed, std::string("cannot start the server of the ") + options_.words.subject);
}

HttpListener::~HttpListener() {
  MHD_quiesce_daemon(daemon_);  // otherwise MHD_stop_daemon closes the socket
  MHD_stop_daemon(daemon_);
}

}  // namespace mailroom::process
