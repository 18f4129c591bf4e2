// Without a word in the configuration mails wait where Debian's package has made a place for them, so that
// none is lost until somebody has set the service up.

#include "sendmail/places.hpp"

#include <filesystem>

#include "base/error.hpp"

namespace mailroom::sendmail {
namespace {

constexpr auto spool_of_package = "/var/spool/mailroom";

}  // namespace

std::optional<submission::Door> local_door(const config::Settings& settings) {
  for (const auto& text : settings.submission.listen) {
    auto door = submission::parse_door(text);
    if (door.address.is_unix() && !door.role.empty()) return door;
  }
  return std::nullopt;
}

submission::Door needed_local_door(const config::Settings& settings) {
  if (auto door = local_door(settings)) return *std::move(door);
  throw Error(
      ExitCode::configuration, "submission.listen has no unix socket with a role",
      "add /run/mailroom/submission/smtp=ROLE for the users of this machine, or =* for a role of each");
}

std::string spool_directory(const config::Settings& settings) {
  if (config::setting_of(settings, "submission.spool").origin.kind != config::OriginKind::default_value)
    return settings.submission.spool;
  std::error_code error;
  return std::filesystem::is_directory(spool_of_package, error) ? spool_of_package : "";
}

}  // namespace mailroom::sendmail
