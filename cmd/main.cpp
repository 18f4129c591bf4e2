// The program: prepares the process, runs a command, and turns errors into messages and exit codes.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "cmd/syntax/arguments.hpp"
#include "cmd/terminal/context.hpp"
#include "process/interruption.hpp"
#include "queue/queue_definition.hpp"

namespace mailroom::cmd {
namespace {

/// Opens /dev/null on each standard descriptor that the caller closed. Otherwise the next file or socket
/// would get its number, and our output.
void occupy_standard_descriptors() {
  for (const int fd : {0, 1, 2}) {
    if (fcntl(fd, F_GETFD) == -1) {
      // open() returns the lowest free number, which is fd. The access mode is the unused one: reading stdin
      // or writing to the others fails, as on a closed descriptor.
      [[maybe_unused]] const int opened = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
  }
}

/// Protects the key and passwords in the environment: no core file, no core piped to a core handler, and no
/// access to memory or environment for other processes of the same user. RLIMIT_CORE does not stop a core
/// handler.
void forbid_core_dumps() {
  if (prctl(PR_SET_DUMPABLE, 0) != 0)
    throw Error(ExitCode::failed, std::string("cannot forbid core dumps: ") + std::strerror(errno));
}

/// Escapes line by line: the message of a failed statement has several lines.
std::string printable_message(std::string_view message) {
  std::string text;
  for (const auto line : split(message, '\n'))
    text += printable(line) + "\n";
  return text;
}

/// For the stream that connects stderr with systemd's journal, which knows the service also when this process
/// has ended. Of an entry with fields that is sent just before, the journal may find out too late whose it
/// is, and `journalctl --unit` does not show it.
std::string with_priority(std::string_view message) {
  std::string text;
  for (const auto line : split(message.substr(0, message.size() - 1), '\n'))
    text += fmt::format("<3>{}\n", line);
  return text;
}

/// Ignores a failed write: stderr may be closed as well.
void print_error(const std::string& message, const std::string& hint) noexcept {
  try {
    const auto text = fmt::format("error: {}{}", printable_message(message),
                                  hint.empty() ? "" : "hint: " + printable_message(hint));
    Output(2).write(without_secrets(stderr_is_journal() ? with_priority(text) : "mailroom: " + text));
  } catch (const std::exception&) {
    return;
  }
}

/// `error`; that of an unknown queue with a hint at the queues that exist, or at the nearest of them. Opens a
/// session for that; without one the hint stays as it is.
Error explained_unknown_queue(const db::DatabaseError& error, Context& context) {
  const std::string_view message = error.what();
  const auto first = message.find('"');
  const auto last = message.rfind('"');
  if (error.sqlstate() != db::sqlstate::unknown_queue || first == last) return error;
  try {
    db::Connection connection(db::configured_database(context.settings()), "mailroom queue",
                              {.answer = std::chrono::seconds(3)});
    return queue::unknown_queue(std::string(message.substr(first + 1, last - first - 1)),
                                queue::queue_names(connection));
  } catch (const Error&) {
    return error;
  }
}

/// The arguments, for a program that is called by the name of another one: sendmail, mailq, newaliases.
std::vector<std::string> arguments_of(std::string_view name, std::vector<std::string> arguments) {
  name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  if (name == "mailq") arguments.insert(arguments.begin(), "-bp");
  if (name == "newaliases") arguments.insert(arguments.begin(), "-bi");
  if (name == "mailq" || name == "newaliases" || name == "sendmail")
    arguments.insert(arguments.begin(), "sendmail");
  return arguments;
}

ExitCode run(const std::vector<std::string>& arguments) {
  const auto invocation = parse_arguments(arguments);
  Context context(invocation.global, invocation.overrides, config::process_environment());
  try {
    return invocation.run(context);
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::unknown_queue) throw;
    throw explained_unknown_queue(error, context);
  }
}

}  // namespace
}  // namespace mailroom::cmd

int main(int argc, char** argv) {
  using namespace mailroom;
  using namespace mailroom::cmd;
  occupy_standard_descriptors();
  // write(2) then returns an error when the reader has gone or the file is at its size limit.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    forbid_core_dumps();
    const process::Interruption interruption;
    return static_cast<int>(
        run(arguments_of(argc > 0 ? *argv : "", {argv + std::min(argc, 1), argv + argc})));
  } catch (const ReaderGone& gone) {
    return static_cast<int>(gone.code());
  } catch (const db::DatabaseError& error) {
    const auto explained = db::explained_damage(error);
    print_error(explained.what(), explained.hint());
    return static_cast<int>(explained.code());
  } catch (const Error& error) {
    print_error(error.what(), error.hint());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    print_error(error.what(), "this is a bug in mailroom: please report it with the command you ran");
    return static_cast<int>(ExitCode::failed);
  }
}
