// Takes a key from a setting or from a file, and names the origin of one that is invalid.

#include "signing/configured_keys.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/secret_text.hpp"

namespace mailroom::signing {
namespace {

constexpr auto previous_keys = "signing.previous_key_files";

}  // namespace

crypto::Key load_current_key(const config::Settings& settings) {
  if (!settings.signing.key.empty()) {
    return crypto::Key::from_hex(settings.signing.key,
                                 config::setting_of(settings, "signing.key").origin.where);
  }
  if (!settings.signing.key_file.empty())
    return crypto::Key::from_file(settings.signing.key_file, settings.signing.allow_readable_key);
  throw Error(ExitCode::configuration, "no signing key is configured",
              "set MAILROOM_SECRET_KEY_FILE or signing.key_file; make a key with: openssl rand -hex 32");
}

crypto::Key load_previous_key(const config::Settings& settings, const std::string& item) {
  if (is_key_text(item))
    return crypto::Key::from_hex(item, config::setting_of(settings, previous_keys).origin.where);
  return crypto::Key::from_file(item, settings.signing.allow_readable_key, describe_previous_keys(settings));
}

std::string describe_previous_keys(const config::Settings& settings) {
  const auto& origin = config::setting_of(settings, previous_keys).origin;
  return fmt::format("{} ({}, {})", previous_keys, origin.where,
                     origin.kind == config::OriginKind::file ? "a list" : "separated by commas");
}

crypto::KeyRing load_key_ring(const config::Settings& settings) {
  crypto::KeyRing ring{load_current_key(settings), {}};
  for (const auto& item : settings.signing.previous_keys)
    ring.previous.push_back(load_previous_key(settings, item));
  return ring;
}

}  // namespace mailroom::signing
