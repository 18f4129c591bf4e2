// Opens the source that the options name, if this build has it.

#include "cmd/bounce/event_sources.hpp"

#include "base/error.hpp"

namespace mailroom::cmd {

std::unique_ptr<ProviderEvents> open_event_source(const EventSources& sources, bool once, Context& context) {
  if (!sources.any()) return nullptr;
#ifdef MAILROOM_HTTP
  if (!sources.sqs.empty()) return open_event_queue(sources.sqs, once, context);
  return listen_for_events(sources.listen, context);
#else
  static_cast<void>(context);
  static_cast<void>(once);
  throw Error(ExitCode::configuration, "this mailroom is built without HTTP, by which events come",
              "build it with -D MAILROOM_HTTP=ON, or give the events as files");
#endif
}

namespace {

/// True if every recipient of the report is of a mail that is known, or the report has none.
bool are_matched(const suppression::Report& report,
                 std::vector<suppression::RecordedBounce>::const_iterator& next) {
  bool are_all = true;
  for (auto rows = rows_of(report); rows > 0; --rows, ++next)
    are_all = are_all && (next->token || next->kind == "unread");
  return are_all;
}

bool is_young(const suppression::Report& report, WallTime now) {
  constexpr std::chrono::minutes patience{15};
  if (!report.counts() || !report.bounce->mail.sent_at) return false;
  const auto age = now.time_since_epoch() -
                   std::chrono::floor<Milliseconds>(*report.bounce->mail.sent_at).time_since_epoch();
  return age < patience && age > -patience;
}

}  // namespace

bool may_be_matched_later(const std::vector<suppression::Report>& reports,
                          std::vector<suppression::RecordedBounce>::const_iterator& next, WallTime now) {
  bool is_early = false;
  for (const auto& report : reports) {
    const bool is_matched = are_matched(report, next);
    is_early = is_early || (!is_matched && is_young(report, now));
  }
  return is_early;
}
}  // namespace mailroom::cmd
