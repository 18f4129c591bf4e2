// Opens the source that the options name, if this build has it.

#include "cmd/bounce/event_sources.hpp"

#include "base/error.hpp"
#ifdef MAILROOM_HTTP
#include "cmd/bounce/event_listener.hpp"
#endif

namespace mailroom {

std::unique_ptr<ProviderEvents> open_event_source(const EventSources& sources, Context& context) {
  if (!sources.any()) return nullptr;
#ifdef MAILROOM_HTTP
  return std::make_unique<EventListener>(sources.listen, context);
#else
  static_cast<void>(context);
  throw Error(ExitCode::configuration, "this mailroom is built without HTTP, by which events come",
              "build it with -D MAILROOM_HTTP=ON, or give the events as files");
#endif
}

bool may_be_matched_later(const Report& report, WallTime now) {
  constexpr std::chrono::minutes patience{15};
  if (!report.counts() || !report.bounce->mail.sent_at) return false;
  const auto age = now.time_since_epoch() -
                   std::chrono::floor<Milliseconds>(*report.bounce->mail.sent_at).time_since_epoch();
  return age < patience;
}

}  // namespace mailroom
