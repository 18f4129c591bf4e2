// What one transaction takes is counted when it is committed.

#include "cmd/bounce/bounce_reader.hpp"

#include <algorithm>
#include <utility>

namespace mailroom {

bool needs_a_look(const RecordedBounce& bounce) {
  return bounce.kind == "unread" || !bounce.token;
}

std::size_t rows_of(const Report& report) {
  return report.counts() ? std::max<std::size_t>(report.bounce->recipients.size(), 1) : 0;
}

BounceReader::BounceReader(Connection& connection, Context& context)
    : connection_(connection),
      context_(context),
      pattern_(context.settings().send.bounce_address),
      keys_(load_key_ring(context.settings())),
      foreign_(context.log()) {}

std::vector<RecordedBounce> BounceReader::record(const std::string& source,
                                                 const std::vector<Report>& reports) {
  auto recorded = record_bounces(connection_, source, reports);
  for (const auto& report : reports)
    ++(report.counts() ? count_.reports : count_.others);
  for (const auto& bounce : recorded)
    count_.add(bounce);
  return recorded;
}

void BounceReader::tell_count() {
  const auto count = std::exchange(count_, {});
  if (count.reports + count.others == 0) return;
  context_.log().info("read reports", {{"reports", count.reports},
                                       {"hard", count.hard},
                                       {"suppressed", count.suppressed},
                                       {"unmatched", count.unmatched},
                                       {"unread", count.unread},
                                       {"known", count.known},
                                       {"others", count.others}});
}

}  // namespace mailroom
