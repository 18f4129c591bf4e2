// mailroom sendmail: takes a mail on standard input as sendmail(1) does, and submits it at the unix socket of
// mailroom submission. Exits with the codes of sysexits(3), which programs know.

#include "cmd/sendmail/sendmail.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <poll.h>
#include <pwd.h>
#include <random>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/actor.hpp"
#include "base/clock.hpp"
#include "cmd/command.hpp"
#include "sendmail/aliases.hpp"
#include "sendmail/arguments.hpp"
#include "sendmail/dialogue.hpp"
#include "sendmail/mail_text.hpp"
#include "sendmail/places.hpp"
#include "sendmail/spool.hpp"

namespace mailroom::cmd {
namespace {

ExitCode exit_with(int code) {
  return static_cast<ExitCode>(code);
}

int code_of(sendmail::Fate fate) {
  switch (fate) {
    case sendmail::Fate::stored:
      return EX_OK;
    case sendmail::Fate::later:
      return EX_TEMPFAIL;
    case sendmail::Fate::no_recipient:
      return EX_NOUSER;
    case sendmail::Fate::no_right:
      return EX_NOPERM;
    case sendmail::Fate::refused:
      break;
  }
  return EX_UNAVAILABLE;
}

ExitCode fail(Context& context, int code, const std::string& message, const std::string& hint = {}) {
  context.err().write(fmt::format("sendmail: {}\n{}", message, hint.empty() ? "" : "hint: " + hint + "\n"));
  return exit_with(code);
}

sendmail::Caller caller() {
  std::random_device random;
  sendmail::Caller caller{.host = host_name(),
                          .now = std::chrono::floor<std::chrono::seconds>(wall_now()),
                          .random = fmt::format("{:08x}{:08x}{:08x}", random(), random(), random())};
  if (const auto* user = getpwuid(getuid()); user != nullptr) {
    caller.user = user->pw_name;
    caller.name = user->pw_gecos;
    caller.name.resize(std::min(caller.name.find(','), caller.name.size()));
  }
  return caller;
}

/// Standard input, at most a little more than a mail may have. Throws Error(failed).
std::string standard_input(std::size_t most) {
  std::string text;
  std::array<char, 65536> bytes{};
  while (text.size() <= most) {
    const auto size = read(0, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0)
      throw Error(ExitCode::failed, fmt::format("cannot read the mail: {}", std::strerror(errno)));
    if (size == 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(size));
  }
  throw Error(ExitCode::unusable, fmt::format("the mail has more than {} bytes", most), "send.max_size");
}

ExitCode submit(Context& context, const sendmail::Mail& mail, const sendmail::Caller& who) {
  const auto& settings = context.settings();
  const auto spool = sendmail::spool_directory(settings);
  const bool has_spool = !spool.empty();
  // Where nobody has set a service up yet, mails wait for it.
  const auto door = has_spool ? sendmail::local_door(settings) : sendmail::needed_local_door(settings);
  const auto path = door ? door->address.path : std::string();
  const int fd = door ? sendmail::connect_to(path) : -1;
  const auto unreached = errno == EACCES && !has_spool ? sendmail::Fate::no_right : sendmail::Fate::later;
  const auto answer =
      fd >= 0
          ? sendmail::Dialogue(fd, who.host).submit(mail)
          : sendmail::Answer{unreached, fmt::format("cannot connect to {}: {}", path, std::strerror(errno))};
  if (answer.fate == sendmail::Fate::stored) return ExitCode::done;
  if (answer.fate != sendmail::Fate::later || !has_spool)
    return fail(context, code_of(answer.fate), answer.words,
                answer.fate == sendmail::Fate::later ? "with submission.spool the mail would wait" : "");
  sendmail::write_to_spool(spool, mail, who.random);
  return ExitCode::done;
}

/// -bs: bytes both ways, until the service closes.
ExitCode speak(Context& context) {
  const auto path = sendmail::needed_local_door(context.settings()).address.path;
  const int fd = sendmail::connect_to(path);
  if (fd < 0)
    return fail(context, EX_TEMPFAIL, fmt::format("cannot connect to {}: {}", path, std::strerror(errno)));
  std::array<pollfd, 2> ends{
      {{.fd = 0, .events = POLLIN, .revents = 0}, {.fd = fd, .events = POLLIN, .revents = 0}}};
  std::array<char, 65536> bytes{};
  const auto carry = [&](int from, const std::function<bool(std::string_view)>& give) {
    const auto size = read(from, bytes.data(), bytes.size());
    return size > 0 && give({bytes.data(), static_cast<std::size_t>(size)});
  };
  while (poll(ends.data(), ends.size(), -1) >= 0 || errno == EINTR) {
    if (ends[1].revents != 0 && !carry(fd, [&](std::string_view text) {
          context.out().write(text);
          return true;
        }))
      break;
    if (ends[0].revents != 0 && !carry(0, [&](std::string_view text) {
          return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
        })) {
      // Its replies to what was said before still come.
      send(fd, "QUIT\r\n", 6, MSG_NOSIGNAL);
      ends[0].fd = -1;
    }
  }
  close(fd);
  return ExitCode::done;
}

ExitCode list_spool(Context& context) {
  const auto directory = sendmail::spool_directory(context.settings());
  const auto files =
      directory.empty() ? std::vector<sendmail::SpooledFile>() : sendmail::waiting_in(directory);
  if (files.empty()) context.print("Mail queue is empty\n");
  for (const auto& file : files)
    context.print(fmt::format("{}/{}\n", directory, file.name));
  return ExitCode::done;
}

ExitCode run_mode(Context& context, const sendmail::Arguments& arguments) {
  if (arguments.mode == sendmail::Mode::nothing) return ExitCode::done;
  if (arguments.mode == sendmail::Mode::queue) return list_spool(context);
  if (arguments.mode == sendmail::Mode::smtp) return speak(context);
  const auto& settings = context.settings();
  const auto who = caller();
  const auto input = standard_input(static_cast<std::size_t>(settings.send.max_size));
  auto mail = sendmail::make_mail(arguments, input, who);
  mail.recipients = sendmail::Aliases::of_file(settings.submission.aliases).resolved(mail.recipients);
  return submit(context, mail, who);
}

}  // namespace

ExitCode run_sendmail(Context& context, const std::vector<std::string>& arguments) {
  try {
    return run_mode(context, sendmail::parse_arguments(arguments));
  } catch (const Error& error) {
    const int code = error.code() == ExitCode::usage           ? EX_USAGE
                     : error.code() == ExitCode::configuration ? EX_CONFIG
                     : error.code() == ExitCode::unusable      ? EX_UNAVAILABLE
                                                               : EX_TEMPFAIL;
    return fail(context, code, error.what(), error.hint());
  }
}

const Command sendmail_command{
    "sendmail", "take a mail on standard input, as sendmail(1) does",
    "Examples:\n"
    "  mailroom sendmail -t -i < mail.eml    to those that its header names\n"
    "  mailroom sendmail root < report.txt   as cron and monitors do\n",
    [](CommandSyntax&) -> Run { return [](Context& context) { return run_sendmail(context, {}); }; },
    "Submits a mail at the unix socket of mailroom submission, for programs that know sendmail(1) alone: cron, mail(1), PHP. Link it as "
    "/usr/sbin/sendmail; mailq and newaliases are names for it too. The options are those of Postfix: -t takes the recipients of the header "
    "to those that are named, -f names the sender, -F his name, -i does not end at a line of one dot, -bs speaks SMTP, -bp lists what "
    "waits. Those that have no meaning here, such as -oem, -N and -R, have no effect.\n\n"
    "Who calls mails as the role of the socket: submission.listen: /run/mailroom/submission/smtp=* gives each user the role of his name. A "
    "recipient without a domain is looked up in submission.aliases, and goes to submission.local_to otherwise; a sender without a domain becomes "
    "submission.local_from.\n\n"
    "If the service cannot be reached, or cannot store the mail now, the mail is written to submission.spool, if that is set, and the service "
    "takes it when it comes. The exit codes are those of sysexits(3): 64 usage, 67 a recipient, 69 refused, 75 try again, 77 no right, 78 "
    "configuration."};

}  // namespace mailroom::cmd
