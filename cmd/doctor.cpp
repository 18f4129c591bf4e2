#include "doctor/doctor.hpp"

#include "cmd/commands.hpp"
#include "cmd/doctor_report.hpp"

namespace mailroom {
namespace {

ExitCode run_doctor(Context& context) {
  const auto findings = examine({.load = [&](FileUse use) { return context.load(use); },
                                 .now = [] { return std::chrono::system_clock::now(); }});
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? render_json(findings)
                     : render_text(findings, {.colour = context.colour_on(context.out()),
                                              .width = context.out().width()}));
  return judge(findings);
}

Run add_doctor(CommandSyntax& syntax) {
  syntax.setting("--queue NAME", "collect.queue", "the queue that has to be there [mailroom]");
  syntax.setting("--channel NAME", "collect.channel", "where notifications come [token_insert]");
  syntax.setting("--key-file FILE", "signing.key_file", "file with the signing key, 64 hexadecimal digits");
  return run_doctor;
}

}  // namespace

const Command doctor_command{
    "doctor", "check all that mailroom rests on, and say how to mend it",
    "Examples:\n"
    "  mailroom doctor                       every check, with what mends it\n"
    "  mailroom doctor --queue newsletter    for the collector of another queue\n"
    "  mailroom doctor -o json               one object, for a monitor\n"
    "\n"
    "Changes nothing. Exit code 0 when there are warnings at most; otherwise 3 when\n"
    "the configuration or a key fails, else 4 when the database does, else 8.\n",
    add_doctor,
    "Looks at the configuration, the keys, the server and what stands between it and mailroom, the schema "
    "and what has become of it, the rights of the role, the triggers, the channel, the sequence, the "
    "clocks and the collectors. Each finding says ok, warning or failure, why, and the command that mends "
    "it. The session is read-only."};

}  // namespace mailroom
