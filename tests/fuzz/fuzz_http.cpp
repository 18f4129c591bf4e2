// The head of a request to the metrics.

#include "fuzz/fuzz.hpp"
#include "metrics/http_request.hpp"

using namespace mailroom;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  const auto whole = parse_http_request(bytes);
  require(whole || size < longest_http_head, "a head of any length ends");
  if (!whole) return 0;
  if (const auto* request = std::get_if<HttpRequest>(&*whole)) {
    require(request->path.find_first_of(" \n?") == std::string::npos, "a path is one word");
    require(request->host.find('\n') == std::string::npos, "a host is on one line");
    const auto more = parse_http_request(bytes + "\r\n\r\n");
    const auto* same = more ? std::get_if<HttpRequest>(&*more) : nullptr;
    require(same != nullptr && same->path == request->path && same->host == request->host,
            "what follows the head does not change it");
  } else {
    require(!std::get<HttpRefusal>(*whole).text.empty(), "a refusal says why");
  }
  return 0;
}
