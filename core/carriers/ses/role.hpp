// The role of this container or instance, whose credentials a service of AWS gives out on the host's own
// network.
#pragma once

#include <string>

#include "carriers/ses/signature.hpp"

namespace mailroom {

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

}  // namespace mailroom
