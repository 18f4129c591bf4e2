// Where `mailroom submission` takes mails: the addresses of submission.listen, and the sockets that the
// service manager has passed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "process/http_listener.hpp"
#include "submission/service.hpp"

namespace mailroom::cmd {

/// Where requests over HTTP come.
struct OpenHttp {
  config::ListenAddress address{};
  int fd = -1;
  bool is_secure = false;
};

/// Doors that are open.
struct OpenDoors {
  std::vector<submission::Door> doors{};
  std::optional<OpenHttp> http{};
  std::vector<std::unique_ptr<process::ListeningSocket>> sockets{};  ///< of those that nobody has passed
};

/// Those of submission.listen, and that of submission.http. A socket that the service manager has passed
/// belongs to the door of its address; without submission.listen each is a door that needs a login. Throws
/// Error(configuration) if there is none, if one is passed that the setting does not name, or a login is
/// needed without a certificate; and as ListeningSocket().
OpenDoors open_doors(const config::Settings& settings);

}  // namespace mailroom::cmd
