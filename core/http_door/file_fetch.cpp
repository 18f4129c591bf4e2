// libcurl is told the addresses, so that it asks no resolver, and which one it has connected to is looked at
// once more.

#include "http_door/file_fetch.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <curl/curl.h>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "transfer/handle.hpp"

namespace mailroom::http_door {
namespace {

constexpr auto no_public_address = "is of a host that has an address which is not public";
constexpr auto too_large = "is larger than 25 MiB, alone or with the others";
constexpr auto cannot_be_fetched = "cannot be fetched";

std::string text_of(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text.data();
}

/// A resolver takes as long as it likes: its thread is left behind then.
struct Lookup {
  std::mutex mutex{};
  std::condition_variable done{};
  bool is_done = false;
  std::vector<std::string> addresses{};
};

void look_up(const std::string& host, Lookup& lookup) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int result = getaddrinfo(host.c_str(), "443", &hints, &all);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(result == 0 ? all : nullptr, freeaddrinfo);
  const std::lock_guard lock(lookup.mutex);
  for (const auto* each = owner.get(); each != nullptr; each = each->ai_next)
    lookup.addresses.push_back(text_of(each->ai_addr, each->ai_addrlen));
  lookup.is_done = true;
  lookup.done.notify_all();
}

std::vector<std::string> resolve(const std::string& host, Milliseconds time) {
  const auto lookup = std::make_shared<Lookup>();
  {
    const BlockedSignals blocked;
    std::thread([host, lookup] { look_up(host, *lookup); }).detach();
  }
  std::unique_lock lock(lookup->mutex);
  lookup->done.wait_for(lock, time, [&] { return lookup->is_done; });
  return std::exchange(lookup->addresses, {});
}

bool is_public(const std::string& text) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(text.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return is_public_address(*found->ai_addr);
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, FreeList>;

/// One file, while it comes.
struct Transfer {
  const FetchRoutes& routes;
  std::size_t most = 0;
  std::string body{};
  bool is_too_large = false;
  bool is_refused = false;  ///< the address that it has connected to
};

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const auto length = size * count;
  transfer.is_too_large = transfer.body.size() + length > transfer.most;
  if (transfer.is_too_large) return 0;
  transfer.body.append(bytes, length);
  return length;
}

int on_request(void* self, char* address, char* /*local*/, int /*port*/, int /*local_port*/) {
  auto& transfer = *static_cast<Transfer*>(self);
  transfer.is_refused = !transfer.routes.is_allowed(address);
  return transfer.is_refused ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/// `HOST:PORT:ADDRESS,…`, the form of CURLOPT_RESOLVE.
CurlList pinned(const RemoteFile& file, const std::vector<std::string>& addresses, int port) {
  std::vector<std::string> all;
  for (const auto& each : addresses)
    all.push_back(each.find(':') == std::string::npos ? each : "[" + each + "]");
  return CurlList(
      curl_slist_append(nullptr, fmt::format("{}:{}:{}", file.host, port, joined(all, ",")).c_str()));
}

/// The words for the caller and for the log; none if the file is in `transfer`.
std::pair<std::string, std::string> fetch(const RemoteFile& file, Transfer& transfer, Milliseconds time) {
  const auto begin = steady_now();
  const auto addresses = transfer.routes.resolve(file.host, time);
  const auto left = time - std::chrono::floor<Milliseconds>(steady_now() - begin);
  if (addresses.empty() || left <= Milliseconds(0)) return {cannot_be_fetched, "its host has no address"};
  for (const auto& address : addresses)
    if (!transfer.routes.is_allowed(address)) return {no_public_address, address};
  const int port = transfer.routes.port;
  const auto resolved = pinned(file, addresses, port);
  const CurlList connected(
      curl_slist_append(nullptr, fmt::format("{0}:443:{0}:{1}", file.host, port).c_str()));
  transfer::Handle handle;
  handle.set(CURLOPT_URL, file.url.c_str());
  handle.set(CURLOPT_PROTOCOLS_STR, "https");
  handle.set(CURLOPT_FOLLOWLOCATION, 0L);
  handle.set(CURLOPT_RESOLVE, resolved.get());
  if (port != 443) handle.set(CURLOPT_CONNECT_TO, connected.get());
  handle.set(CURLOPT_TIMEOUT_MS, static_cast<long>(left.count()));
  handle.set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(transfer.most));
  handle.set(CURLOPT_USERAGENT, "mailroom");
  handle.set(CURLOPT_WRITEFUNCTION, &on_body);
  handle.set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  handle.set(CURLOPT_PREREQFUNCTION, &on_request);
  handle.set(CURLOPT_PREREQDATA, static_cast<void*>(&transfer));
  handle.secure(transfer.routes.ca_file);
  const auto result = curl_easy_perform(handle.get());
  if (transfer.is_refused) return {no_public_address, "it has connected to another address"};
  if (transfer.is_too_large || result == CURLE_FILESIZE_EXCEEDED) return {too_large, "too large"};
  if (result != CURLE_OK) return {cannot_be_fetched, handle.error_of(result)};
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  // A redirect is not followed: it could lead anywhere.
  if (status != 200) return {cannot_be_fetched, fmt::format("status {}", status)};
  return {};
}

}  // namespace

FetchRoutes usual_routes() {
  return {.resolve = resolve, .is_allowed = is_public};
}

std::variant<std::vector<std::string>, FetchProblem> fetch_files(const std::vector<RemoteFile>& files,
                                                                 const FetchLimits& limits,
                                                                 const FetchRoutes& routes) {
  const auto end = steady_now() + limits.time;
  auto room = limits.bytes;
  std::vector<std::string> bodies;
  for (const auto& file : files) {
    Transfer transfer{.routes = routes, .most = room};
    const auto left = std::max(Milliseconds(0), std::chrono::floor<Milliseconds>(end - steady_now()));
    std::pair<std::string, std::string> problem;
    try {
      problem = fetch(file, transfer, left);
    } catch (const std::exception& error) {
      problem = {cannot_be_fetched, error.what()};
    }
    if (!problem.first.empty())
      return FetchProblem{file.place, std::move(problem.first), std::move(problem.second)};
    room -= transfer.body.size();
    bodies.push_back(std::move(transfer.body));
  }
  return bodies;
}

}  // namespace mailroom::http_door
