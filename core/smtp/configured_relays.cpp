#include "smtp/configured_relays.hpp"

#include <algorithm>

#include "base/password_file.hpp"
#include "config/required_keys.hpp"

namespace mailroom {

ConfiguredRelays read_relays(const Settings& settings) {
  require_keys({relay_key}, settings);
  ConfiguredRelays configured;
  configured.relays = parse_relay_urls(settings.send_relay);
  auto& options = configured.options;
  options.ca_file = settings.send_ca_file;
  options.timeout = settings.send_timeout;
  options.throttled_by = settings.send_throttled_by;
  if (!settings.send_password_file.empty()) {
    options.password =
        read_password_file(settings.send_password_file, settings.allow_readable_key, "send.password_file");
  }
  const bool needs_password = std::any_of(configured.relays.begin(), configured.relays.end(),
                                          [](const RelayUrl& relay) { return !relay.user.empty(); });
  if (needs_password) require_keys({password_file_key}, settings);
  for (const auto& relay : configured.relays)
    check_relay(relay, options);
  return configured;
}

}  // namespace mailroom
