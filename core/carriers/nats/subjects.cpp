// Tries the subject of every action of a line against those of the stream.

#include "carriers/nats/subjects.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "carriers/broker_url.hpp"
#include "carriers/nats/answer.hpp"

namespace mailroom {
namespace {

std::vector<std::string> subjects_of(const NatsStream& stream, const std::string& pattern,
                                     const std::string& queue, bool is_taken) {
  std::vector<std::string> subjects;
  for (const auto* action : {"activation", "password_recovery", "mixed"}) {
    auto subject = nats_subject(pattern, queue, action);
    const bool takes = std::ranges::any_of(
        stream.subjects, [&](const auto& each) { return nats_subject_matches(each, subject); });
    const bool is_new = std::ranges::find(subjects, subject) == subjects.end();
    if (takes == is_taken && is_new) subjects.push_back(std::move(subject));
  }
  return subjects;
}

}  // namespace

std::string nats_subject(const std::string& pattern, const std::string& queue, const std::string& action) {
  return filled_name(pattern, nats_subject_part(queue), action);
}

std::vector<std::string> subjects_taken(const NatsStream& stream, const std::string& pattern,
                                        const std::string& queue) {
  return subjects_of(stream, pattern, queue, true);
}

std::vector<std::string> subjects_refused(const NatsStream& stream, const std::string& pattern,
                                          const std::string& queue) {
  return subjects_of(stream, pattern, queue, false);
}

std::string nats_stream_hint(const Settings& settings) {
  const auto prefix = settings.sink.subject.substr(0, settings.sink.subject.find_first_of(".{"));
  return fmt::format(
      "make it, for example with NATS's own tool (docs/nats.md does without): nats stream add {} --subjects '{}.>' --storage file --replicas 3 --retention limits "
      "--dupe-window 1h --defaults; or name another in sink.stream and sink.subject",
      settings.sink.stream, prefix);
}

}  // namespace mailroom
