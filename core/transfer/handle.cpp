// Sets what holds for every connection.

#include "transfer/handle.hpp"

#include <sys/socket.h>

namespace mailroom::transfer {
namespace {

/// Children of this process must not inherit the connection.
curl_socket_t open_socket(void* /*unused*/, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace

Handle::Handle() {
  renew();
}

void Handle::renew() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  curl_.reset(initialised == CURLE_OK ? curl_easy_init() : nullptr);
  if (!curl_) throw Error(ExitCode::failed, "cannot initialise libcurl");
  // Otherwise all_proxy and similar variables of the environment would count, and a proxy would resolve the
  // name after our check of the address.
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NOSIGNAL, 1L);
  // Do not wait for the thread that resolves the name when an attempt is interrupted.
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
}

void Handle::secure(const std::string& ca_file) {
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (ca_file.empty()) return;
  set(CURLOPT_CAINFO, ca_file.c_str());
  set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
}

}  // namespace mailroom::transfer
