// Reads the files of passwords and tokens, and refuses settings that do not go together.

#include "carriers/smtp/configured_relays.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/password_file.hpp"
#include "carriers/smtp/hello_name.hpp"

namespace mailroom {
namespace {

/// The token of the relay's user; null if a password is used.
std::shared_ptr<TokenSource> token_source(const Settings& settings) {
  if (!settings.send.token_command.empty()) {
    return std::make_shared<TokenSource>(
        [command = settings.send.token_command, limit = settings.send.timeout] {
          return parse_access_token(output_of_command(command, limit), "the program of send.token_command");
        },
        true);
  }
  if (settings.send.token_file.empty()) return nullptr;
  return std::make_shared<TokenSource>(
      [path = settings.send.token_file, readable = settings.signing.allow_readable_key] {
        return parse_access_token(read_token_file(path, readable), "the file of send.token_file");
      },
      false);
}

void require_one_login(const Settings& settings) {
  const bool has_file = !settings.send.token_file.empty();
  const bool has_command = !settings.send.token_command.empty();
  if (has_file && has_command) {
    throw Error(ExitCode::configuration, "send.token_file and send.token_command are both set",
                "remove one of them: mailroom config show says where each comes from");
  }
}

}  // namespace

ConfiguredRelays read_relays(const Settings& settings) {
  require_keys({"send.relay"}, settings);
  ConfiguredRelays configured;
  configured.relays = parse_relay_urls(settings.send.relay);
  auto& options = configured.options;
  options.ca_file = settings.send.ca_file;
  options.hello_name = settings.send.hello_name.empty() ? own_hello_name() : settings.send.hello_name;
  options.plaintext_for_tests = settings.send.plaintext_relay_for_tests;
  options.timeout = settings.send.timeout;
  options.throttled_by = settings.send.throttled_by;
  if (!settings.send.password_file.empty()) {
    options.password = read_password_file(settings.send.password_file, settings.signing.allow_readable_key,
                                          "send.password_file");
  }
  const bool needs_password = std::any_of(configured.relays.begin(), configured.relays.end(),
                                          [](const RelayUrl& relay) { return !relay.user.empty(); });
  require_one_login(settings);
  options.tokens = token_source(settings);
  if (needs_password && !options.tokens) require_keys({"send.password_file"}, settings);
  for (const auto& relay : configured.relays)
    check_relay(relay, options);
  return configured;
}

}  // namespace mailroom
