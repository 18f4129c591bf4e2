// Fetches files of other servers for one request, and reaches no network of our own by that.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "http_door/remote_file.hpp"

namespace mailroom::http_door {

/// Of all files of a request.
struct FetchLimits {
  std::size_t bytes = std::size_t{25} * 1024 * 1024;
  Milliseconds time{10'000};
};

/// What tests replace: no test has a public address.
struct FetchRoutes {
  /// All addresses of a host, as texts; none if it has none in that time.
  std::function<std::vector<std::string>(const std::string& host, Milliseconds time)> resolve{};
  std::function<bool(const std::string& address)> is_allowed{};
  int port = 443;
  std::string ca_file{};
};

/// The resolver of this machine, and public addresses.
FetchRoutes usual_routes();

/// Why a file is not there, and which one.
struct FetchProblem {
  std::size_t place = 0;
  std::string words{};   ///< for the caller, who learns nothing of what the other server said
  std::string reason{};  ///< for the log
};

/// The files in their order. Names are resolved once, and the connection goes to what was looked at.
std::variant<std::vector<std::string>, FetchProblem> fetch_files(const std::vector<RemoteFile>& files,
                                                                 const FetchLimits& limits,
                                                                 const FetchRoutes& routes);

}  // namespace mailroom::http_door
