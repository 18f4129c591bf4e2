// The checks that need no database: configuration, signing key and previous keys.

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <vector>

#include "base/secret_text.hpp"
#include "base/wording.hpp"
#include "db/conninfo.hpp"
#include "doctor/finding.hpp"
#include "doctor/subject.hpp"
#include "signing/configured_keys.hpp"

namespace mailroom::doctor {
namespace {

constexpr auto list_of_previous = "signing.previous_key_files";

bool is_absent(const std::string& path) {
  std::error_code failure;
  return std::filesystem::status(path, failure).type() == std::filesystem::file_type::not_found;
}

/// True if all bytes are equal: probably a placeholder.
bool is_weak(const crypto::Key& key) {
  const auto& bytes = key.bytes();
  return std::all_of(bytes.begin(), bytes.end(), [&](auto byte) { return byte == bytes.front(); });
}

status::Fix how_to_replace(const config::Settings& settings) {
  if (settings.signing.key_file.empty())
    return {status::FixKind::make_key, "export MAILROOM_SECRET_KEY=$(openssl rand -hex 32)"};
  return {status::FixKind::make_key,
          fmt::format("(umask 077; openssl rand -hex 32 > {})", shell_word(settings.signing.key_file))};
}

std::string place_of_current(const config::Settings& settings) {
  return settings.signing.key_file.empty() ? config::setting_of(settings, "signing.key").origin.where
                                           : settings.signing.key_file;
}

Findings judge_previous(Subject& subject, const std::string& item) {
  const auto& settings = *subject.settings;
  const bool is_inline = is_key_text(item);
  const auto where = config::setting_of(settings, list_of_previous).origin.where;
  const auto name = is_inline ? "the key in " + where : item;
  const auto hint = "remove it from " + signing::describe_previous_keys(settings);
  if (!is_inline && is_absent(item)) {
    return {failure(fmt::format("there is no key file {}", item), {}, "restore it, or " + hint)};
  }
  Findings findings;
  if (!is_inline) findings = judge_permissions("key", item, settings.signing.allow_readable_key);
  if (any_failure(findings)) return findings;
  const auto key = signing::load_previous_key(settings, item);
  subject.previous_fingerprints.push_back(key.fingerprint());
  if (key.fingerprint() == subject.fingerprint)
    findings.push_back(warning(name + " is also the current key", {}, hint));
  if (is_weak(key)) {
    findings.push_back(failure(name + " is one byte repeated: anyone can forge tokens under it", {}, hint));
  }
  return findings;
}

}  // namespace

Findings check_configuration(Subject& subject) {
  subject.settings = subject.sources.load(config::FileUse::read);
  subject.settings_complete = true;
  const auto& settings = *subject.settings;
  subject.url_valid = false;
  const bool has_secret = db::has_password(settings.database.url);
  subject.url_valid = true;
  if (has_secret && config::setting_of(settings, "database.url").origin.kind == config::OriginKind::flag) {
    return {warning("the password in --database-url is visible in the process list", {},
                    "write it to ~/.pgpass instead: host:port:database:user:password, with mode 0600")};
  }
  return {fine(settings.file.empty() ? "no file; flags, environment and defaults"
                                     : "read from " + settings.file)};
}

Findings check_key(Subject& subject) {
  const auto& settings = *subject.settings;
  if (settings.signing.key.empty() && settings.signing.key_file.empty()) {
    return {
        failure("no signing key is configured",
                status::fixes(status::FixKind::make_key, {"(umask 077; openssl rand -hex 32 > mailroom.key)",
                                                          "export MAILROOM_SECRET_KEY_FILE=mailroom.key"}))};
  }
  Findings findings;
  if (const auto& path = settings.signing.key_file; !path.empty()) {
    if (is_absent(path)) {
      const auto where = config::setting_of(settings, "signing.key_file").origin.where;
      return {failure(
          fmt::format("there is no key file {}", path), {how_to_replace(settings)},
          fmt::format("restore it, or name another file in {}; only if there never was a key:", where))};
    }
    findings = judge_permissions("key", path, settings.signing.allow_readable_key);
  }
  if (any_failure(findings)) return findings;
  const auto key = signing::load_current_key(settings);
  subject.fingerprint = key.fingerprint();
  const auto name = fmt::format("{} from {}", subject.fingerprint, place_of_current(settings));
  if (is_weak(key)) {
    findings.push_back(
        failure(name + " is one byte repeated: anyone can forge tokens", {how_to_replace(settings)}));
  }
  return or_fine(findings, name);
}

Findings check_previous_keys(Subject& subject) {
  const auto& settings = *subject.settings;
  Findings findings;
  for (const auto& item : settings.signing.previous_keys) {
    const auto more = judge_previous(subject, item);
    findings.insert(findings.end(), more.begin(), more.end());
  }
  const auto count = settings.signing.previous_keys.size();
  return or_fine(findings, count == 0 ? "none" : fmt::format("{}, all readable", count));
}

}  // namespace mailroom::doctor
