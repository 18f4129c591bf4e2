// Reads with libcurl, also the greeting, which is no HTTP.

#include "carriers/nats/monitor_page.hpp"

#include <array>
#include <curl/curl.h>
#include <memory>
#include <poll.h>

#include "base/clock.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds monitor_patience{2000};
constexpr std::size_t largest_page = 1'000'000;

struct EndTransfer {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Transfer = std::unique_ptr<CURL, EndTransfer>;

Transfer transfer_of(const std::string& url) {
  Transfer transfer(curl_easy_init());
  if (!transfer) return transfer;
  curl_easy_setopt(transfer.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(transfer.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(monitor_patience.count()));
  curl_easy_setopt(transfer.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(transfer.get(), CURLOPT_PROXY, "");
  return transfer;
}

std::size_t keep_page(char* bytes, std::size_t size, std::size_t count, void* page) {
  auto& text = *static_cast<std::string*>(page);
  if (text.size() + size * count > largest_page) return 0;
  text.append(bytes, size * count);
  return size * count;
}

/// The first line that the other side says after the connection is made; empty if it says none in time.
std::string first_line(CURL* handle) {
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &socket);
  const auto until = steady_now() + monitor_patience;
  std::string text;
  while (text.find("\r\n") == std::string::npos && text.size() < largest_page) {
    std::array<char, 4096> part{};
    std::size_t size = 0;
    const auto result = curl_easy_recv(handle, part.data(), part.size(), &size);
    text.append(part.data(), size);
    if (result == CURLE_AGAIN) {
      const auto left = std::chrono::ceil<Milliseconds>(until - steady_now()).count();
      pollfd readable{socket, POLLIN, 0};
      if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) < 0) return {};
    } else if (result != CURLE_OK || size == 0) {
      return {};
    }
  }
  return text.substr(0, text.find("\r\n"));
}

}  // namespace

std::string read_nats_greeting(const ServerAddress& server) {
  const auto transfer = transfer_of("http://" + server.address());
  if (!transfer) return {};
  curl_easy_setopt(transfer.get(), CURLOPT_CONNECT_ONLY, 1L);
  if (curl_easy_perform(transfer.get()) != CURLE_OK) return {};
  const auto line = first_line(transfer.get());
  constexpr std::string_view before = "INFO ";
  return line.starts_with(before) ? line.substr(before.size()) : std::string();
}

std::string read_monitor_page(const ServerAddress& server, const std::string& path) {
  const auto transfer = transfer_of("http://" + server.address() + path);
  if (!transfer) return {};
  std::string page;
  curl_easy_setopt(transfer.get(), CURLOPT_WRITEFUNCTION, keep_page);
  curl_easy_setopt(transfer.get(), CURLOPT_WRITEDATA, &page);
  return curl_easy_perform(transfer.get()) == CURLE_OK ? page : std::string();
}

}  // namespace mailroom
