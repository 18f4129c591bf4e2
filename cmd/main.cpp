#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>

#include "base/text.hpp"
#include "cmd/arguments.hpp"

namespace mailroom {
namespace {

/// A standard descriptor that the caller closed would be given to the next file or socket, and our output to
/// that.
void occupy_standard_descriptors() {
  for (const int fd : {0, 1, 2}) {
    if (fcntl(fd, F_GETFD) == -1) {
      // The lowest free number, and in the direction in which nobody uses it: what reads stdin or writes to
      // the others fails, as with a closed descriptor.
      [[maybe_unused]] const int opened = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
  }
}

/// The environment may hold the key and passwords from the first moment on: no core file, no core sent to a
/// collector of cores, and no look at memory or environment for other processes of the same user. A limit of
/// RLIMIT_CORE would not hold off a collector of cores.
void forbid_core_dumps() {
  if (prctl(PR_SET_DUMPABLE, 0) != 0)
    throw Error(ExitCode::failed, std::string("cannot forbid core dumps: ") + std::strerror(errno));
}

/// A statement that failed has lines of its own.
std::string printable_message(std::string_view message) {
  std::string text;
  for (;;) {
    const auto line = message.substr(0, message.find('\n'));
    text += printable(line);
    if (line.size() == message.size()) return text;
    text += '\n';
    message.remove_prefix(line.size() + 1);
  }
}

/// stderr may be closed as well, and then there is nobody left to tell.
void print_error(const std::string& message, const std::string& hint) noexcept {
  try {
    Output(2).write(
        without_secrets(fmt::format("mailroom: error: {}\n{}", printable_message(message),
                                    hint.empty() ? "" : "hint: " + printable_message(hint) + "\n")));
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
  // A reader that has gone, or a file at its size limit, is then an error of write(2).
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    forbid_core_dumps();
    return static_cast<int>(run({argv + 1, argv + argc}));
  } catch (const DatabaseError& error) {
    const auto explained = explained_damage(error);
    print_error(explained.what(), explained.hint());
    return static_cast<int>(explained.code());
  } catch (const Error& error) {
    print_error(error.what(), error.hint());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    print_error(error.what(), "this is a fault of mailroom: please report it with the command you ran");
    return static_cast<int>(ExitCode::failed);
  }
}
