// mailroom desk: pages for people without a terminal. Describes its options, and serves what the settings
// say.

#include <fmt/format.h>

#include "base/json.hpp"
#include "cmd/command.hpp"
#include "cmd/desk/desk_pages.hpp"
#include "consumer/service_reporter.hpp"
#include "db/conninfo.hpp"
#include "desk/desk_door.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::chrono::seconds look_over{10};

ExitCode run_desk(Context& context) {
  process::StopSignal stop;
  const auto& settings = context.settings();
  if (!settings.desk.listen)
    throw Error(ExitCode::configuration, "desk.listen is not set", "for example 127.0.0.1:8026");
  const consumer::ServiceManager manager(context.log());
  desk::DeskDoor door(
      {.listen = *settings.desk.listen,
       .url = settings.desk.url,
       .limits = {.idle = settings.desk.idle_timeout, .longest = settings.desk.session_timeout},
       .target = db::configured_database(settings)},
      [&settings](desk::DeskCall& call) { return desk_page(call, settings); }, context.log());
  context.print(context.global().output == OutputFormat::json
                    ? json_text(nlohmann::ordered_json{{"url", door.url()}}) + "\n"
                    : door.url() + "\n");
  manager.ready();
  while (!stop.requested()) {
    stop.sleep_for(look_over);
    if (manager.patience()) manager.alive();
    door.end_late();
  }
  manager.stopping();
  return ExitCode::done;
}

}  // namespace

const Command desk_command{
    "desk", "serve pages for support: find a mail, and see what became of it",
    "Examples:\n"
    "  mailroom desk                                for browsers of this host\n"
    "  mailroom desk --url https://desk.example     behind a proxy with TLS\n"
    "\n"
    "People sign in as a role of PostgreSQL, with its password. Whoever reads needs the\n"
    "rights of mailroom_reader, whoever changes those of mailroom_operator;\n"
    "docs/desk.md says how to make such roles.\n",
    [](CommandSyntax&) -> Run { return [](Context& context) { return run_desk(context); }; },
    "Serves pages for people without a terminal: one search, by address, reference, message, Message-ID or the queue id of a relay; "
    "the history of a mail in the words of mailroom audit; the mail itself, in a sandbox; the mails of today by domain, role and "
    "profile; and what mailroom status finds, with the fixes. An operator's role also cancels a message, moves it to another time, sends "
    "it again, and stops or frees an address: each page shows the plan that the command prints, and asks for a reason.\n\n"
    "Each session is a session of PostgreSQL as the role that has signed in: the server checks the password, which is kept nowhere, "
    "and a right that the role lacks is not there. The user that database.url names is not used. A session ends "
    "after desk.idle_timeout without a request, and desk.session_timeout after the sign-in. SIGTERM ends all.\n\n"
    "Without desk.url the pages are for browsers of this host. With it a proxy that has TLS serves them under that URL, and passes "
    "the header Host on."};

}  // namespace mailroom::cmd
