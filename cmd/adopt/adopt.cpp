// mailroom adopt: shows why nothing is sent from a database, and what waits in it, asks, and makes it the one
// that mails are sent from.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/context.hpp"
#include "queue/home.hpp"

namespace mailroom::cmd {
namespace {

struct AdoptOptions {
  std::vector<std::string> hosts;
  bool any_host = false;
  std::string reason;
  bool dry_run = false;
};

std::string about(std::int64_t count, std::string_view noun) {
  const bool is_more = count == queue::WaitingHere::most_counted;
  return (is_more ? "at least " : "") + counted(count, noun);
}

std::string hosts_text(const std::vector<std::string>& hosts) {
  return hosts.empty() ? "any host" : joined(hosts, ", ");
}

/// How what waits is dropped first, where there is something.
std::string empty_before_text(const queue::WaitingHere& waiting) {
  std::string text;
  if (waiting.tokens > 0)
    text += "  mailroom rewind-cursor --to-end                moves past the tokens that wait\n";
  if (waiting.deferred > 0)
    text += "  mailroom revoke --outcome deferred             ends those that wait for another attempt\n";
  if (waiting.scheduled > 0)
    text += "  mailroom message cancel --state scheduled      cancels what is scheduled\n";
  return text.empty() ? text : "To send none of them from here, run before this, in this database:\n" + text;
}

std::string render_plan(const queue::Home& home, const std::vector<std::string>& hosts,
                        const queue::WaitingHere& waiting) {
  std::string text;
  if (home.problem.empty()) {
    text = fmt::format("Mails are sent from this database, since {} by {}, by consumers on {}.\n",
                       moment_text(home.adopted_at), shown_text(home.adopted_by), hosts_text(home.hosts));
  } else {
    text = fmt::format("Nothing is sent from this database: {}.\n", shown_text(home.problem));
  }
  if (home.problem.empty() && hosts == home.hosts) return text;
  text += fmt::format("From then on consumers on {} may serve it.\n", hosts_text(hosts));
  if (home.problem.empty() && !hosts.empty())
    text +=
        "One that is connected from elsewhere ends before it takes another token; what it has taken it may still send.\n";
  if (home.problem.empty()) return text;
  text += fmt::format(
      "What waits in it is sent as soon as one runs: {}, {} for another attempt, and {} scheduled.\n",
      about(waiting.tokens, "token"), about(waiting.deferred, "token"), about(waiting.scheduled, "message"));
  text += waiting.last_batch_at
              ? fmt::format("The last batch on record here is of {}. ", moment_text(*waiting.last_batch_at))
              : "No batch is on record here. ";
  text +=
      "What the database that it was copied from has sent since, or still sends, is not known here: people get these "
      "mails twice.\n";
  return text + empty_before_text(waiting);
}

std::string plan_json(const queue::Home& home, const std::vector<std::string>& hosts,
                      const queue::WaitingHere& waiting, bool carried_out) {
  nlohmann::ordered_json object{
      {"problem", nullptr},
      {"hosts", hosts},
      {"tokens", waiting.tokens},
      {"deferred", waiting.deferred},
      {"scheduled", waiting.scheduled},
      {"last_batch_at", waiting.last_batch_at ? moment_json<nlohmann::ordered_json>(*waiting.last_batch_at)
                                              : nlohmann::ordered_json(nullptr)},
      {"carried_out", carried_out}};
  if (!home.problem.empty()) object["problem"] = home.problem;
  return json_text(object) + "\n";
}

ExitCode run_adopt(const AdoptOptions& options, Context& context) {
  const auto connection = context.connect_to_schema("adopt");
  const auto waits = context.watch_waits(*connection, "adopt");
  const auto home = queue::read_home(*connection);
  const auto hosts = options.any_host        ? std::vector<std::string>()
                     : options.hosts.empty() ? home.hosts
                                             : options.hosts;
  const auto waiting = queue::count_waiting_here(*connection);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_plan(home, hosts, waiting));
  const bool has_work = !home.problem.empty() || hosts != home.hosts;
  if (options.dry_run || !has_work) {
    context.print(json       ? plan_json(home, hosts, waiting, false)
                  : has_work ? "dry run: nothing was changed\n"
                             : "nothing to do\n");
    return ExitCode::done;
  }
  confirm(context, home.problem.empty() ? "change the hosts?" : "send mails from this database?");
  queue::adopt_here(*connection, hosts, queue::operator_author(*connection, options.reason));
  context.print(json ? plan_json(home, hosts, waiting, true) : "done: mails are sent from this database\n");
  return ExitCode::done;
}

Run add_adopt(CommandSyntax& syntax) {
  auto options = std::make_shared<AdoptOptions>();
  auto hosts = syntax.texts("--host NAME", options->hosts,
                            "let only consumers on this host serve the database; repeatable [as before]");
  syntax.flag("--any-host", options->any_host, "let consumers on any host serve it").excludes(hosts);
  syntax.text("--reason TEXT", options->reason, "record TEXT as the reason");
  syntax.flag("--dry-run", options->dry_run, "show the plan and stop");
  return [options](Context& context) { return run_adopt(*options, context); };
}

}  // namespace

const Command adopt_command{
    "adopt", "make a copy of the database the one that mails are sent from",
    "Examples:\n"
    "  mailroom adopt --dry-run            is this a copy, and what would be sent?\n"
    "  mailroom adopt                      ask, and send from here from now on\n"
    "  mailroom adopt --host app1          only a consumer on app1 may send\n",
    add_adopt,
    "The schema remembers where it lives: by the system identifier of the cluster and the oids of the database and of two "
    "tables. A restored dump, and a database that was created from another one as its template, differ in these. There every "
    "consumer refuses to start, with exit status 3, and one that runs while a dump is restored beneath it stops. Rows that were "
    "loaded from another database have its number, and are refused in the same way. So a copy for tests mails nobody.\n\n"
    "After a move to another server by dump and restore, adopt makes the new database the one that mails are sent from. It "
    "says what waits there, and which commands drop it first if the old database sends it, asks, or requires --yes, and records who did it. A failover, a promotion, pg_upgrade, and a new "
    "name of the host, the database or the schema need no adopt.\n\n"
    "A physical copy (pg_basebackup, a snapshot of a disk) looks like the original. With --host only consumers on the hosts "
    "that are named, by what hostname(1) says, may serve the database: name them before you make such copies. docs/copies.md "
    "has more."};

}  // namespace mailroom::cmd
