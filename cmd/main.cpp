#include <csignal>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>

#include "cmd/arguments.hpp"

namespace mailroom {
namespace {

/// A standard descriptor that the caller closed would be given to the next file or socket, and our output to
/// that.
void occupy_standard_descriptors() {
  for (const int fd : {0, 1, 2}) {
    if (fcntl(fd, F_GETFD) == -1) {
      // The lowest free number, and for reading: a write to it fails, as one to a closed descriptor should.
      [[maybe_unused]] const int opened = open("/dev/null", O_RDONLY);
    }
  }
}

/// stderr may be closed as well, and then there is nobody left to tell.
void print_error(const std::string& message, const std::string& hint) noexcept {
  try {
    Output(2).write(
        fmt::format("mailroom: error: {}\n{}", message, hint.empty() ? "" : "hint: " + hint + "\n"));
  } catch (const std::exception&) {
    return;
  }
}

ExitCode run(const std::vector<std::string>& arguments) {
  const auto invocation = parse_arguments(arguments);
  Context context(invocation.global, invocation.overrides, process_environment());
  return invocation.run(context);
}

}  // namespace
}  // namespace mailroom

int main(int argc, char** argv) {
  using namespace mailroom;
  occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return static_cast<int>(run({argv + 1, argv + argc}));
  } catch (const Error& error) {
    print_error(error.what(), error.hint());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    print_error(error.what(), "this is a fault of mailroom: please report it with the command you ran");
    return static_cast<int>(ExitCode::failed);
  }
}
