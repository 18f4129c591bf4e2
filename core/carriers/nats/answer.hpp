// What JetStream's answers mean for a line, and which subjects a stream takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "delivery/carrier.hpp"

namespace mailroom {

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
  Verdict verdict = Verdict::unknown;
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

}  // namespace mailroom
