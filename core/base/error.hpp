// How a command fails: the exit codes of the process with their explanations, and the exception that brings
// one of them to main.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace mailroom {

/// One exit status, or several of the same meaning, as documented for users.
struct ExitStatus {
  std::string_view status;  ///< `3`, or `130, 143`
  std::string_view meaning;
  std::string_view fix;  ///< empty for none
};

/// Every exit status, in numeric order; docs/exit-codes.md shows the same table.
std::span<const ExitStatus> exit_statuses();

/// How a run ended; the value is the exit status of the process. exit_codes.hpp explains each to users.
enum class ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,
  configuration = 3,
  database = 4,
  schema = 5,
  locked = 6,
  declined = 7,
  unusable = 8,
  forged = 9,
  output_closed = 10,
  interrupted = 130,  ///< as a shell reports SIGINT
  terminated = 143,   ///< as a shell reports SIGTERM
};

/// The one exception of the project: a lower-case message (what went wrong), a hint (what to do next; may be
/// empty) and the exit code. Thrown where the cause is known, caught once, in main.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message, std::string hint = {})
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  ExitCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  ExitCode code_;
  std::string hint_;
};

/// The reader of the output has gone, as `head` does once it has enough. A listing then ends without a
/// message; only a command whose lines must not be lost says it.
class ReaderGone : public Error {
 public:
  explicit ReaderGone(const std::string& message)
      : Error(ExitCode::output_closed, message, "the process that reads it has gone") {}
};

}  // namespace mailroom
