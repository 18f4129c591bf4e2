// Signature Version 4, by which AWS knows who sends a request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::ses {

/// Who signs.
struct AwsCredentials {
  std::string key_id{};
  std::string secret{};
  std::string session_token{};     ///< of a role; empty for a user
  std::optional<WallTime> ends{};  ///< of a role
};

/// What is signed of a request without a query.
struct AwsRequest {
  std::string method;
  std::string host;            ///< as the header Host has it
  std::string path;            ///< as it is sent, with percent signs
  std::string content_type{};  ///< empty without a body
  std::string target{};        ///< X-Amz-Target, for services that have one; or empty
  std::string_view body{};
};

/// Where a signature holds.
struct AwsScope {
  std::string region;
  std::string service;
};

/// The headers of the request that its signature needs: Host, Content-Type and X-Amz-Target if there is one,
/// X-Amz-Date, X-Amz-Security-Token of a role, and Authorization. `now`: seconds since 1970; the signature
/// holds for five minutes around it. Pure.
std::vector<std::string> signed_headers(const AwsRequest& request, const AwsCredentials& credentials,
                                        const AwsScope& scope, std::int64_t now);

}  // namespace mailroom::ses
