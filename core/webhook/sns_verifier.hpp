// Who posted a message of SNS, by its signature and the topic.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "webhook/sns_message.hpp"

namespace mailroom {

/// Asks hosts of Amazon.
class SnsWeb {
 public:
  virtual ~SnsWeb() = default;
  /// The body of a 200; nullopt for anything else.
  virtual std::optional<std::string> get(const std::string& url) = 0;
};

/// By libcurl: over TLS with the certificates of the system, without proxies and redirects.
class CurlSnsWeb final : public SnsWeb {
 public:
  std::optional<std::string> get(const std::string& url) override;
};

/// What a check has found.
struct SnsVerdict {
  std::string problem{};        ///< why the message is not known to be of the topic; empty if it is
  bool is_unavailable = false;  ///< its certificate could not be fetched: it may be tried again
};

/// Checks messages of topics. For several threads.
class SnsVerifier {
 public:
  /// Certificates that are kept: Amazon has one for each region at a time.
  static constexpr std::size_t most_kept = 16;
  /// After a certificate could not be fetched, none is for this long.
  static constexpr std::chrono::seconds pause{5};

  /// `topics`: the ARNs of those that may post. `web` must outlive this.
  SnsVerifier(std::vector<std::string> topics, SnsWeb& web) : topics_(std::move(topics)), web_(web) {}

  SnsVerdict check(const SnsMessage& message);

 private:
  std::optional<std::string> certificate_at(const std::string& url);

  std::vector<std::string> topics_;
  SnsWeb& web_;
  std::mutex mutex_;
  std::map<std::string, std::string> kept_;
  std::optional<TimePoint> failed_at_;
};

}  // namespace mailroom
