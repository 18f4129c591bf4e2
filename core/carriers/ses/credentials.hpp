// The AWS credentials of this host: read from a file or asked of the role that it has, and kept for a while.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "carriers/ses/signature.hpp"
#include "config/settings.hpp"

namespace mailroom::ses {

/// Reads lines `aws_access_key_id = …`, `aws_secret_access_key = …` and perhaps `aws_session_token = …`; in a
/// file with sections, those of `[default]`. Throws Error(configuration), which names `source` and shows
/// nothing of the text, if one is missing or has other characters than such a value.
AwsCredentials parse_credentials_file(std::string_view text, const std::string& source);

/// Reads what the service of a role answers: JSON with AccessKeyId, SecretAccessKey, Token and Expiration.
/// Throws Error(failed), which names `source` and shows nothing secret.
AwsCredentials parse_role_credentials(std::string_view text, const std::string& source);

/// Keeps credentials until they are about to end. Asks for the next ones in a thread of its own a few minutes
/// before, so that no mail waits for them. For several threads.
class CredentialKeeper {
 public:
  using Fetch = std::function<AwsCredentials()>;

  /// What has no end, such as a file, is fetched anew after this.
  static constexpr std::chrono::seconds reread_after{60};
  static constexpr std::chrono::minutes refresh_before{5};

  /// `fetch` may throw Error.
  explicit CredentialKeeper(Fetch fetch) : fetch_(std::move(fetch)) {}
  /// Waits for a fetch that is under way.
  ~CredentialKeeper();
  CredentialKeeper(const CredentialKeeper&) = delete;
  CredentialKeeper& operator=(const CredentialKeeper&) = delete;

  /// Credentials that hold now. Throws what `fetch` throws if there are none.
  AwsCredentials get(WallTime now);
  /// They were refused: fetches anew the next time.
  void forget();

 private:
  void refresh();

  Fetch fetch_;
  std::mutex mutex_;
  AwsCredentials kept_;  ///< without a key id: none
  WallTime fetched_{};
  WallTime tried_{};  ///< to refresh
  bool is_refreshing_ = false;
  std::thread refresher_;
};

/// What fetches the credentials of send.ses_credentials_file, or without it those of the container's or the
/// instance's role. Reads the environment now. Throws Error(configuration) for a file that cannot be used.
CredentialKeeper::Fetch credential_source(const config::RelayPath& path);

/// Where a role's credentials come from.
struct RoleSource {
  std::string container_url{};  ///< empty: it is an instance
  std::string token{};          ///< for the header Authorization of that URL; may be empty
  std::string token_file{};     ///< which has it instead, read each time
  std::string instance_url{};   ///< of the metadata service
};

/// As AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, AWS_CONTAINER_CREDENTIALS_FULL_URI,
/// AWS_CONTAINER_AUTHORIZATION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE and
/// AWS_EC2_METADATA_SERVICE_ENDPOINT of the environment say. Throws Error(configuration) for a URL of a
/// container that is http:// to another host than those that AWS names.
RoleSource role_source();

/// Asks the container's service, or the instance's by IMDSv2: at most some seconds. Throws Error(failed).
AwsCredentials fetch_role_credentials(const RoleSource& source);

}  // namespace mailroom::ses
