// Compares the time of a whole claim at the other side with what a claim costs beside its tokens.

#include "delivery/claim_pace.hpp"

namespace mailroom {

void ClaimPace::began(TimePoint now) {
  claim_took_ = finished_at_ ? now - *finished_at_ : std::chrono::nanoseconds(0);
}

void ClaimPace::finished(TimePoint now, std::chrono::nanoseconds busy, int tokens, int whole) {
  finished_at_ = now;
  if (tokens > 0) overlaps_ = busy * whole / tokens > claim_took_ - tokens * token_cost;
}

}  // namespace mailroom
