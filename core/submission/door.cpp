// What an address of submission.listen says.

#include "submission/door.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace mailroom::submission {
namespace {

constexpr std::string_view tls_scheme = "smtps://";

bool is_loopback(const config::ListenAddress& address) {
  return address.is_unix() || address.host.starts_with("127.") || address.host == "::1";
}

void check_role(const Door& door) {
  const auto at = door.address.text();
  if (door.role.empty()) return;
  if (!is_loopback(door.address))
    throw Error(ExitCode::configuration,
                fmt::format("submission.listen lets everybody mail as {} at {}", shown_text(door.role), at),
                "an address with a role is a loopback address or a unix socket");
  if (door.role == "*" && !door.address.is_unix())
    throw Error(ExitCode::configuration, fmt::format("submission.listen has =* at {}", at),
                "only a unix socket knows the user at its other end");
}

}  // namespace

Door parse_door(const std::string& text) {
  constexpr int submissions_port = 465;  // RFC 8314, section 3.3
  const auto equals = text.rfind('=');
  auto place = text.substr(0, equals);
  const bool is_tls = place.starts_with(tls_scheme);
  if (is_tls) place.erase(0, tls_scheme.size());
  const auto address = config::parse_listen_address(place);
  if (!address || address->path.size() > config::longest_socket_path)
    throw Error(
        ExitCode::configuration,
        fmt::format("submission.listen has '{}', which is no address of this host", shown_text(text)),
        "write 127.0.0.1:587, smtps://127.0.0.1:465, 127.0.0.1:25=ROLE, or the path of a unix socket");
  Door door{.address = *address, .is_implicit_tls = is_tls || address->port == submissions_port};
  if (equals != std::string::npos) {
    door.role = text.substr(equals + 1);
    door.is_implicit_tls = is_tls;
    if (door.role.empty())
      throw Error(ExitCode::configuration,
                  fmt::format("submission.listen has no role behind {}", shown_text(text)),
                  "write ADDRESS=ROLE, or leave = out for logins");
  }
  check_role(door);
  return door;
}

}  // namespace mailroom::submission
