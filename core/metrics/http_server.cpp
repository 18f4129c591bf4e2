// The rules of the pages: who may ask, and how.

#include "metrics/http_server.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace mailroom::metrics {
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

process::HttpListener::Options options() {
  return {.words = metrics_words, .methods = "GET, HEAD"};
}

}  // namespace

HttpServer::HttpServer(const config::ListenAddress& address, HttpPages pages)
    : pages_(std::move(pages)),
      is_loopback_(!address.is_unix() && is_loopback_name(address.host)),
      listener_(address, options(), [this](const process::HttpCall& call) { return answer(call); }) {}

process::HttpPage HttpServer::answer(const process::HttpCall& call) const {
  if (call.method != "GET" && call.method != "HEAD")
    return {.status = 405, .text = "only GET and HEAD are answered\n"};
  const auto [first, last] = call.headers.equal_range("host");
  const bool is_for_this_host =
      std::all_of(first, last, [](const auto& header) { return is_loopback_name(host_name(header.second)); });
  if (is_loopback_ && !is_for_this_host)
    return {.status = 403, .text = "this address serves only this host\n"};
  return pages_(call);
}

}  // namespace mailroom::metrics
