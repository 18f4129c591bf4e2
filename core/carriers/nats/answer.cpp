// Sorts JetStream's error codes by one question: may the message be stored nevertheless?

#include "carriers/nats/answer.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/text.hpp"
#include "carriers/broker.hpp"
#include "queue/action.hpp"

namespace mailroom::nats {
namespace {

// Error codes of JetStream's API.
constexpr int message_too_large = 10054;
constexpr int header_too_large = 10097;
constexpr int store_failed = 10077;
/// Those with which a stream refuses a message before it stores it, for a reason that is not in the message.
constexpr std::array refusals{
    10002,  // resource limits of the account
    10008,  // temporarily unavailable
    10009,  // not the leader
    10023,  // insufficient resources
    10028,  // insufficient memory
    10039,  // not enabled for the account
    10047,  // insufficient storage
    10053,  // limits of the stream
    10060,  // another stream than the expected one
    10076,  // not enabled
    10109,  // sealed
    10118,  // offline
    10122,  // more bytes than the account allows
};

NatsJudgement judge_stored(const NatsAnswer& answer, std::string_view stream) {
  // Some servers (2.10.14 to 2.10.27) answer so to the repetition of a message that no quorum has stored.
  if (answer.sequence == 0) {
    return {delivery::Verdict::unknown, 0,
            "JetStream acknowledged with sequence 0, so it may not have stored the line"};
  }
  return {delivery::Verdict::accepted, 0,
          fmt::format("stream {}, sequence {}{}", stream, answer.sequence,
                      answer.duplicate ? ", duplicate" : "")};
}

NatsJudgement judge_error(const NatsAnswer& answer) {
  auto text = answer.text.empty() ? std::string("JetStream error") : answer.text;
  if (answer.code == message_too_large || answer.code == header_too_large)
    return {delivery::Verdict::rejected, answer.code, std::move(text)};
  // `maximum messages exceeded`, `maximum bytes exceeded`: the stream is full.
  const bool is_full = answer.code == store_failed && text.find("maximum") != std::string::npos;
  const bool is_refusal = is_full || std::ranges::find(refusals, answer.code) != refusals.end();
  // After other errors, such as that a message of this id is being stored, it may still be stored.
  return {is_refusal ? delivery::Verdict::unavailable : delivery::Verdict::unknown, answer.code,
          std::move(text)};
}

std::vector<std::string> subjects_of(const NatsStream& stream, const std::string& pattern,
                                     const std::string& queue, bool is_taken) {
  std::vector<std::string> subjects;
  // Those that come by themselves, without an application that asks for messages.
  std::vector<std::string> actions;
  for (const auto& action : queue::Actions::built_in().all()) {
    if (!action.account_status.empty()) actions.push_back(action.name);
  }
  actions.emplace_back("mixed");
  for (const auto& action : actions) {
    auto subject = nats_subject(pattern, queue, action);
    const bool takes = std::ranges::any_of(
        stream.subjects, [&](const auto& each) { return nats_subject_matches(each, subject); });
    const bool is_new = std::ranges::find(subjects, subject) == subjects.end();
    if (takes == is_taken && is_new) subjects.push_back(std::move(subject));
  }
  return subjects;
}

}  // namespace

NatsJudgement judge_nats_answer(const NatsAnswer& answer, std::string_view stream, std::string_view subject) {
  switch (answer.kind) {
    case NatsAnswer::Kind::stored:
      return judge_stored(answer, stream);
    case NatsAnswer::Kind::error:
      return judge_error(answer);
    case NatsAnswer::Kind::no_responders:
      return {delivery::Verdict::unavailable, 503,
              fmt::format("no stream takes {} now: there is none, or it has no leader", subject)};
    case NatsAnswer::Kind::no_answer:
      break;
  }
  return {delivery::Verdict::unknown, 0, "JetStream did not answer in time"};
}

std::string nats_subject_part(std::string_view text) {
  std::string part(text);
  std::ranges::replace_if(
      part, [](unsigned char c) { return c <= ' ' || c == '.' || c == '*' || c == '>' || c == 0x7f; }, '_');
  return part;
}

bool nats_subject_matches(std::string_view pattern, std::string_view subject) {
  const auto wanted = split(pattern, '.');
  const auto given = split(subject, '.');
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == ">") return i < given.size();
    if (i >= given.size() || (wanted[i] != "*" && wanted[i] != given[i])) return false;
  }
  return wanted.size() == given.size();
}

std::string nats_subject(const std::string& pattern, const std::string& queue, const std::string& action) {
  return carriers::filled_name(pattern, nats_subject_part(queue), action);
}

std::vector<std::string> subjects_taken(const NatsStream& stream, const std::string& pattern,
                                        const std::string& queue) {
  return subjects_of(stream, pattern, queue, true);
}

std::vector<std::string> subjects_refused(const NatsStream& stream, const std::string& pattern,
                                          const std::string& queue) {
  return subjects_of(stream, pattern, queue, false);
}

std::string nats_stream_hint(const config::Settings& settings) {
  const auto prefix = settings.sink.subject.substr(0, settings.sink.subject.find_first_of(".{"));
  return fmt::format(
      "make it, for example with NATS's own tool (docs/nats.md does without): nats stream add {} --subjects '{}.>' --storage file --replicas 3 --retention limits "
      "--dupe-window 1h --defaults; or name another in sink.stream and sink.subject",
      settings.sink.stream, prefix);
}

}  // namespace mailroom::nats
