// Takes a key from a setting or from a file, and names the origin of one that is invalid.

#include "signing/configured_keys.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/secret_text.hpp"

namespace mailroom {
namespace {

constexpr auto previous_keys = "signing.previous_key_files";

}  // namespace

Key load_current_key(const Settings& settings) {
  if (!settings.signing.key.empty()) {
    return Key::from_hex(settings.signing.key, setting_of(settings, "signing.key").origin.where);
  }
  if (!settings.signing.key_file.empty())
    return Key::from_file(settings.signing.key_file, settings.signing.allow_readable_key);
  throw Error(ExitCode::configuration, "no signing key is configured",
              "set MAILROOM_SECRET_KEY_FILE or signing.key_file; make a key with: openssl rand -hex 32");
}

Key load_previous_key(const Settings& settings, const std::string& item) {
  if (is_key_text(item)) return Key::from_hex(item, setting_of(settings, previous_keys).origin.where);
  return Key::from_file(item, settings.signing.allow_readable_key, describe_previous_keys(settings));
}

std::string describe_previous_keys(const Settings& settings) {
  const auto& origin = setting_of(settings, previous_keys).origin;
  return fmt::format("{} ({}, {})", previous_keys, origin.where,
                     origin.kind == OriginKind::file ? "a list" : "separated by commas");
}

KeyRing load_key_ring(const Settings& settings) {
  KeyRing ring{load_current_key(settings), {}};
  for (const auto& item : settings.signing.previous_keys)
    ring.previous.push_back(load_previous_key(settings, item));
  return ring;
}

}  // namespace mailroom
