// Where tokens spend their time between creation and delivery, for mailroom audit --stages.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "audit/history.hpp"

namespace mailroom::audit {

/// The way of a token from its creation to its line or its delivery.
enum class TokenStage { created, committed, claimed, signed_, written, accepted };

/// `created`.
const char* token_stage_name(TokenStage stage);

using StageSeconds = std::chrono::duration<double>;

/// How long tokens took from one stage to another.
struct StageTimes {
  TokenStage from = TokenStage::created;
  TokenStage to = TokenStage::accepted;
  std::int64_t tokens = 0;  ///< for which both are known
  StageSeconds p50{};
  StageSeconds p90{};
  StageSeconds p99{};
  StageSeconds max{};
};

/// When a token reached each stage, as far as that is recorded.
struct StagedToken {
  std::int64_t token = 0;
  std::string queue;
  std::int64_t batch = 0;
  std::array<std::optional<Moment>, 6> at{};  ///< by TokenStage
  StageSeconds total{};                       ///< from its creation
  std::string trace_id{};                     ///< of the application's trace; empty for none
};

/// Which tokens to report on.
struct StageSubject {
  std::optional<std::int64_t> account{};
  std::optional<std::int64_t> token{};
  std::optional<std::int64_t> batch{};

  bool is_everything() const { return !account && !token && !batch; }
};

struct StageReport {
  Moment now{};  ///< the server's clock, in whole seconds
  Period period{};
  std::int64_t tokens = 0;             ///< that were written or accepted; no others are reported on
  bool has_commits = false;            ///< the server keeps commit times
  std::vector<StageTimes> stages{};    ///< those that some token has, in order; then the whole way
  std::vector<StagedToken> slowest{};  ///< first
};

/// Reports on the tokens that were claimed within the period, at most the newest `most_staged_tokens`.
/// Without a subject and without `since` it begins 24 hours ago. Throws Error(usage) as parse_period().
StageReport read_stages(db::Connection& connection, const StageSubject& subject, const AuditRequest& request);

constexpr std::int64_t most_staged_tokens = 20'000;
constexpr int most_slow_tokens = 10;

}  // namespace mailroom::audit
