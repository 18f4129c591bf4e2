// Asks for one value after the other, until each can be used.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cmd/terminal/context.hpp"

namespace mailroom::cmd {

/// A value that init needs.
struct Question {
  std::string text;      ///< `sender of the mails`
  std::string option;    ///< which gives it without being asked: `--from`
  std::string fallback;  ///< what an empty answer means; may be empty
  bool is_required = true;
  bool is_secret = false;  ///< not shown while it is typed
  /// Throws Error for a value that cannot be used.
  std::function<void(const std::string& value)> check{};
};

/// The answer to a question, `given` if that is not empty: then it is checked, and nothing is asked. At a
/// terminal an answer that cannot be used is said to be so, and asked for again. Throws Error(usage) if there
/// is no terminal to ask on and no fallback, Error(declined) at the end of the input, and what the check
/// throws of a value that was not typed at a question.
std::string answer_to(const Question& question, const std::string& given, Context& context);

}  // namespace mailroom::cmd
