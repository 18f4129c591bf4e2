// libmicrohttpd reads the requests. It takes a socket that listens, so that the messages about addresses are
// ours.

#include "metrics/http_server.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <microhttpd.h>
#include <string_view>
#include <utility>
#include <vector>

#include "base/blocked_signals.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

/// `[::1]:9464` and `localhost:9464` without the port, in small letters.
std::string host_name(std::string_view host) {
  if (host.starts_with('[')) return lower_case(host.substr(1, host.find(']') - 1));
  return lower_case(host.substr(0, host.find(':')));
}

/// True if `host` names this host's loopback, or is empty. A web page whose name leads to a loopback address
/// sends another one.
bool is_loopback_name(const std::string& host) {
  if (host.empty() || host == "localhost" || host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

MHD_Result add_host(void* hosts, MHD_ValueKind, const char* name, const char* value) {
  if (lower_case(name) == "host" && value != nullptr)
    static_cast<std::vector<std::string>*>(hosts)->push_back(host_name(trimmed(value)));
  return MHD_YES;
}

MHD_Result respond(MHD_Connection* connection, HttpPage page) {
  auto* response = MHD_create_response_from_buffer(page.text.size(), page.text.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", page.type);
  MHD_add_response_header(response, "Cache-Control", "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Connection", "close");
  if (page.status == 405) MHD_add_response_header(response, "Allow", "GET, HEAD");
  const auto queued = MHD_queue_response(connection, static_cast<unsigned>(page.status), response);
  MHD_destroy_response(response);
  return queued;
}

/// Answers a request when its head has come; a body is not read.
MHD_Result answer_request(void* server, MHD_Connection* connection, const char* path, const char* method,
                          const char*, const char*, std::size_t*, void**) noexcept {
  std::vector<std::string> hosts;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, add_host, &hosts);
  return respond(connection, static_cast<const HttpServer*>(server)->answer(method, path, hosts));
}

}  // namespace

HttpServer::HttpServer(const ListenAddress& address, HttpPages pages)
    : socket_(address),
      pages_(std::move(pages)),
      is_loopback_(!address.is_unix() && is_loopback_name(address.host)) {
  const BlockedSignals blocked;
  daemon_ = MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC, 0,
                             nullptr, nullptr, answer_request, this, MHD_OPTION_LISTEN_SOCKET, socket_.fd(),
                             MHD_OPTION_CONNECTION_LIMIT, most_clients, MHD_OPTION_CONNECTION_TIMEOUT,
                             static_cast<unsigned>(patience.count()), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                             longest_head, MHD_OPTION_END);
  if (daemon_ == nullptr) throw Error(ExitCode::failed, "cannot start the server of the metrics");
}

HttpServer::~HttpServer() {
  MHD_quiesce_daemon(daemon_);  // otherwise MHD_stop_daemon closes the socket
  MHD_stop_daemon(daemon_);
}

HttpPage HttpServer::answer(const std::string& method, const std::string& path,
                            const std::vector<std::string>& hosts) const {
  if (method != "GET" && method != "HEAD") return {.status = 405, .text = "only GET and HEAD are answered\n"};
  if (is_loopback_ && !std::all_of(hosts.begin(), hosts.end(), is_loopback_name))
    return {.status = 403, .text = "this address serves only this host\n"};
  return pages_(path);
}

}  // namespace mailroom
