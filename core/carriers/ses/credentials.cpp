// Parses both forms, and renews in the background what is about to end.

#include "carriers/ses/credentials.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"

namespace mailroom::ses {
namespace {

constexpr auto file_form =
    "it must have the lines aws_access_key_id = … and aws_secret_access_key = …, and aws_session_token = … of a role";

/// True for what may stand in a header.
bool is_value(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

void check_complete(const AwsCredentials& credentials, const std::string& source, ExitCode code,
                    const std::string& hint) {
  const auto& token = credentials.session_token;
  if (is_value(credentials.key_id) && is_value(credentials.secret) && (token.empty() || is_value(token)))
    return;
  throw Error(code, fmt::format("{} has no AWS credentials", source), hint);
}

AwsCredentials read_credentials_file(const std::string& path, bool allow_readable) {
  const SecretFile file(path, {"credentials", "send.ses_credentials_file", "", file_form}, allow_readable);
  return parse_credentials_file(file.text(), fmt::format("the credentials file {}", path));
}

}  // namespace

AwsCredentials parse_credentials_file(std::string_view text, const std::string& source) {
  AwsCredentials credentials;
  bool is_ours = true;
  for (const auto line : split(text, '\n')) {
    const auto words = trimmed(line);
    if (words.starts_with('[')) is_ours = words == "[default]";
    const auto equals = words.find('=');
    if (!is_ours || words.starts_with('#') || equals == std::string_view::npos) continue;
    const auto name = lower_case(trimmed(words.substr(0, equals)));
    const auto value = std::string(trimmed(words.substr(equals + 1)));
    if (name == "aws_access_key_id") credentials.key_id = value;
    if (name == "aws_secret_access_key") credentials.secret = value;
    if (name == "aws_session_token") credentials.session_token = value;
  }
  check_complete(credentials, source, ExitCode::configuration, file_form);
  return credentials;
}

AwsCredentials parse_role_credentials(std::string_view text, const std::string& source) {
  const auto object = try_parse_json(text);
  AwsCredentials credentials;
  if (object.is_object()) {
    credentials = {.key_id = text_at(object, "AccessKeyId"),
                   .secret = text_at(object, "SecretAccessKey"),
                   .session_token = text_at(object, "Token"),
                   .ends = std::nullopt};
    const auto ends = parse_moment(text_at(object, "Expiration"), Moment{});
    if (ends) credentials.ends = std::chrono::floor<Milliseconds>(*ends);
  }
  check_complete(credentials, source, ExitCode::failed,
                 "give the instance or the container a role that may send, or set send.ses_credentials_file");
  return credentials;
}

CredentialKeeper::~CredentialKeeper() {
  if (refresher_.joinable()) refresher_.join();
}

AwsCredentials CredentialKeeper::get(WallTime now) {
  std::unique_lock lock(mutex_);
  const bool has_some = !kept_.key_id.empty();
  const auto renew_at = kept_.ends ? *kept_.ends - refresh_before : fetched_ + reread_after;
  if (has_some && now < renew_at) return kept_;
  if (has_some && kept_.ends && now < *kept_.ends - std::chrono::seconds(10)) {
    // Those in hand hold a while longer.
    if (!is_refreshing_ && now >= tried_ + std::chrono::seconds(10)) {
      tried_ = now;
      is_refreshing_ = true;
      if (refresher_.joinable()) refresher_.join();
      const BlockedSignals blocked;
      refresher_ = std::thread([this] { refresh(); });
    }
    return kept_;
  }
  lock.unlock();
  auto fetched = fetch_();
  lock.lock();
  fetched_ = now;
  return kept_ = std::move(fetched);
}

void CredentialKeeper::refresh() {
  AwsCredentials fetched;
  try {
    fetched = fetch_();
  } catch (const std::exception&) {
    // The next call tries again; when those in hand have ended, it says why that fails.
  }
  const std::lock_guard lock(mutex_);
  if (!fetched.key_id.empty()) kept_ = std::move(fetched);
  is_refreshing_ = false;
}

void CredentialKeeper::forget() {
  const std::lock_guard lock(mutex_);
  kept_ = {};
}

CredentialKeeper::Fetch credential_source(const config::RelayPath& path) {
  const auto file = path.option("send.ses_credentials_file");
  if (file.empty()) return [source = role_source()] { return fetch_role_credentials(source); };
  const bool readable = path.allows_readable_files;
  read_credentials_file(file, readable);
  return [file, readable] { return read_credentials_file(file, readable); };
}

}  // namespace mailroom::ses
