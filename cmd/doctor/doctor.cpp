// mailroom doctor: checks everything that mailroom depends on, and shows how to fix it.

#include "cmd/command.hpp"
#include "cmd/doctor/doctor_report.hpp"
#include "cmd/terminal/tracing.hpp"
#include "doctor/subject.hpp"

namespace mailroom::cmd {
namespace {

struct DoctorOptions {
  std::string role;
  std::string mail;
};

ExitCode run_doctor(const DoctorOptions& options, Context& context) {
  const auto findings = doctor::examine({.load = [&](config::FileUse use) { return context.load(use); },
                                         .now = [] { return std::chrono::system_clock::now(); },
                                         .application_role = options.role,
                                         .received_mail = options.mail,
                                         .try_traces = try_tracing});
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? render_json(findings)
                     : render_text(findings, {.colour = context.colour_on(context.out()),
                                              .width = context.out().width()}));
  return doctor::judge(findings);
}

Run add_doctor(CommandSyntax& syntax) {
  auto options = std::make_shared<DoctorOptions>();
  syntax.text("--as ROLE", options->role,
              "insert an account and ask for a message as this role, rolled back [the role of the session]");
  syntax.text(
      "--mail FILE", options->mail,
      "look at a mail with a topic as it was received: whether its DKIM signature covers both headers for "
      "unsubscribing");
  return [options](Context& context) { return run_doctor(*options, context); };
}

}  // namespace

const Command doctor_command{
    "doctor", "check everything that mailroom depends on, and show how to fix it",
    "Examples:\n"
    "  mailroom doctor                       run every check, and show the fixes\n"
    "  mailroom doctor --queue newsletter    check for the collector of another queue\n"
    "  mailroom doctor -o json               one JSON object, for monitoring\n"
    "\n"
    "Changes no row. Exit code 0 without a failure, even with warnings; otherwise 3\n"
    "if the configuration, a key or the templates fail, else 4 if the database does,\n"
    "else 8.\n",
    add_doctor,
    "Checks the configuration, the keys, the server and any pooler in front of it, the schema and its "
    "drift, the privileges of the role, the triggers, an insert of an account, the channel, the sequence, the clocks, the "
    "collectors, the mail templates and the relays. It connects to each relay of send.relay, with TLS and "
    "authentication as mailroom send does, and sends no mail. Each finding shows ok, warning or failure, the reason, and the command that fixes it. The "
    "session is read-only, but for a transaction that inserts an account and is rolled back; ids of accounts and "
    "tokens are used up by it."};

}  // namespace mailroom::cmd
