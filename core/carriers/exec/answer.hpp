// The grammar of answers in the protocol of docs/exec.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "delivery/carrier.hpp"

namespace mailroom {

/// One line that a program has answered.
struct ExecAnswer {
  Verdict verdict = Verdict::accepted;
  std::string batch;                    ///< the first word of the line that it answers
  std::optional<std::int64_t> token{};  ///< of a failure; nullopt: of every token
  std::string text;                     ///< the rest of the line
};

/// Reads `ok BATCH [TEXT]` or `fail BATCH TOKEN-ID|* retry|reject [REASON]`; nullopt for anything else.
std::optional<ExecAnswer> parse_exec_answer(std::string_view line);

}  // namespace mailroom
