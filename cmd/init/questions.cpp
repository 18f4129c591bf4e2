// Reads answers from the terminal, without an echo where they are secret.

#include "cmd/init/questions.hpp"

#include <fmt/format.h>
#include <iostream>
#include <termios.h>
#include <unistd.h>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::cmd {
namespace {

/// While it lives, what is typed is not shown.
class Unseen {
 public:
  explicit Unseen(bool is_secret) : is_secret_(is_secret && tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!is_secret_) return;
    auto silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &silent);
  }
  ~Unseen() {
    if (is_secret_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

 private:
  termios before_{};
  bool is_secret_;
};

bool may_ask(Context& context) {
  return !context.global().yes && can_ask(context);
}

std::string ask(const Question& question, Context& context) {
  context.err().write(fmt::format("{}{}: ", question.text,
                                  question.fallback.empty() ? "" : fmt::format(" [{}]", question.fallback)));
  std::string answer;
  bool has_answer = false;
  {
    const Unseen unseen(question.is_secret);
    has_answer = static_cast<bool>(std::getline(std::cin, answer));
  }
  if (!has_answer || question.is_secret) context.err().write("\n");
  if (!has_answer) throw Error(ExitCode::declined, "there was no answer: nothing was changed");
  if (question.is_secret) return answer;
  return std::string(trimmed(answer));
}

}  // namespace

std::string answer_to(const Question& question, const std::string& given, Context& context) {
  const auto check = [&](const std::string& value) {
    if (question.check && !value.empty()) question.check(value);
    return value;
  };
  if (!given.empty()) return check(given);
  if (!may_ask(context)) {
    if (question.fallback.empty() && question.is_required)
      throw Error(ExitCode::usage,
                  fmt::format("{} is not given, and there is no terminal to ask on", question.option),
                  "mailroom init --help lists what can be given");
    return check(question.fallback);
  }
  while (true) {
    auto answer = ask(question, context);
    if (answer.empty()) answer = question.fallback;
    if (answer.empty() && question.is_required) {
      context.err().write("an answer is needed\n");
      continue;
    }
    try {
      return check(answer);
    } catch (const Error& error) {
      // The only errors that end nothing: who typed it can type it again.
      context.err().write(
          fmt::format("{}\n{}", printable(error.what()),
                      error.hint().empty() ? "" : fmt::format("hint: {}\n", printable(error.hint()))));
    }
  }
}

}  // namespace mailroom::cmd
