#include "cmd/send/send_setup.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cmd/template/configured_mail.hpp"
#include "smtp/password_file.hpp"

namespace mailroom {
namespace {

/// Throws Error(configuration) that names every key without a value, with an example of the first.
void require_keys(const std::vector<std::pair<std::string, std::string>>& keys, const Settings& settings) {
  std::vector<std::string> missing;
  std::string example;
  for (const auto& [key, each] : keys) {
    if (!setting_of(settings, key).text.empty()) continue;
    if (missing.empty()) example = fmt::format("for example {}: {}", key, each);
    missing.push_back(key);
  }
  if (missing.empty()) return;
  throw Error(ExitCode::configuration,
              fmt::format("{} {} not set", fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"),
              example + "; mailroom.yaml.example describes each");
}

const std::pair<std::string, std::string> relay_key{"send.relay", "smtp://user@relay.example:587"};
const std::pair<std::string, std::string> from_key{"send.from", "Example <no-reply@app.example>"};
const std::pair<std::string, std::string> link_key{"send.link", "https://app.example/{action}?token={token}"};

bool needs_password(const CourierOptions& options) {
  return std::any_of(options.relays.begin(), options.relays.end(),
                     [](const auto& relay) { return !relay.user.empty(); });
}

}  // namespace

CourierOptions configured_relays(const Settings& settings, std::uint64_t seed) {
  require_keys({relay_key, from_key, link_key}, settings);
  CourierOptions options;
  options.relays = parse_relay_urls(settings.send_relay);
  options.connections = settings.send_connections;
  options.seed = seed;
  options.relay.ca_file = settings.send_ca_file;
  options.relay.timeout = settings.send_timeout;
  options.relay.throttled_by = settings.send_throttled_by;
  if (!settings.send_password_file.empty())
    options.relay.password = read_password_file(settings.send_password_file, settings.allow_readable_key);
  if (needs_password(options))
    require_keys({{"send.password_file", "/etc/mailroom/relay-password"}}, settings);
  for (const auto& relay : options.relays)
    check_relay(relay, options.relay);
  return options;
}

DeliveryPolicy delivery_policy(const Settings& settings) {
  return {.when_unknown = settings.send_when_unknown,
          .supersede = settings.send_supersede,
          .per_account = settings.send_per_account};
}

std::shared_ptr<const MailWriter> configured_writer(const Settings& settings) {
  const auto mail = parse_configured_mail(settings);
  require_keys({from_key, link_key}, settings);
  return std::make_shared<MailWriter>(*mail.from, MessageBuilder(*mail.from, mail.reply_to, mail.headers),
                                      load_templates(settings.send_templates), *mail.link, settings.queue);
}

}  // namespace mailroom
