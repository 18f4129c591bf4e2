// Names the verdicts as records and output show them.

#include "delivery/answer.hpp"

namespace mailroom {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::accepted:
      return "accepted";
    case Verdict::deferred:
      return "deferred";
    case Verdict::rejected:
      return "rejected";
    case Verdict::unknown:
      return "unknown";
    case Verdict::unavailable:
      return "unavailable";
  }
  return "?";
}

bool Answer::shows_life() const {
  if (verdict == Verdict::unavailable || verdict == Verdict::unknown) return false;
  // What was given up here, or has not come as far as the message, says nothing of it.
  return !about_everyone && !before_message && (code != 0 || !is_excused);
}

}  // namespace mailroom
