// Names the outcomes as records and output show them.

#include "delivery/delivery.hpp"

namespace mailroom {

const char* mail_outcome_name(MailOutcome outcome) {
  switch (outcome) {
    case MailOutcome::accepted:
      return "accepted";
    case MailOutcome::deferred:
      return "deferred";
    case MailOutcome::rejected:
      return "rejected";
    case MailOutcome::unknown:
      return "unknown";
    case MailOutcome::unavailable:
      return "unavailable";
  }
  return "?";
}

}  // namespace mailroom
