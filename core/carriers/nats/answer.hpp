// The subjects of lines, and what JetStream's answers mean for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "carriers/nats/connection.hpp"
#include "config/settings.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::nats {

/// The subject of a line: `pattern`, with the queue as nats_subject_part().
std::string nats_subject(const std::string& pattern, const std::string& queue, const std::string& action);

/// Those of the subjects of a queue's lines that the stream takes.
std::vector<std::string> subjects_taken(const NatsStream& stream, const std::string& pattern,
                                        const std::string& queue);
/// Those that it does not take.
std::vector<std::string> subjects_refused(const NatsStream& stream, const std::string& pattern,
                                          const std::string& queue);

/// How to make the stream that the settings name.
std::string nats_stream_hint(const config::Settings& settings);

/// What a NATS server answered to a line, or what the library said in its place.
struct NatsAnswer {
  enum class Kind {
    stored,         ///< JetStream acknowledged it
    error,          ///< JetStream answered with an error
    no_responders,  ///< nobody takes the subject: no stream, or none with a leader
    no_answer,      ///< none in time
  };
  Kind kind = Kind::no_answer;
  std::uint64_t sequence = 0;  ///< of the message in its stream
  bool duplicate = false;      ///< the stream had a message of this id
  int code = 0;                ///< of the error
  std::string text{};          ///< of the error
};

struct NatsJudgement {
  delivery::Verdict verdict = delivery::Verdict::unknown;
  int code = 0;
  std::string reply;
};

/// Decides what became of a line.
NatsJudgement judge_nats_answer(const NatsAnswer& answer, std::string_view stream, std::string_view subject);

/// The part `text` of a subject, where a dot, a wildcard or a blank would divide it: `news letter` becomes
/// `news_letter`.
std::string nats_subject_part(std::string_view text);

/// True if a stream with this subject, which may have wildcards, takes messages to `subject`.
bool nats_subject_matches(std::string_view pattern, std::string_view subject);

}  // namespace mailroom::nats
