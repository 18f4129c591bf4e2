// mailroom audit: the history of an account, a token, a batch or messages, or all that happened in a period.

#include <fmt/format.h>
#include <optional>

#include "accounts/named_subject.hpp"
#include "cmd/audit/audit_history.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/command.hpp"
#include "cmd/selection/people_list.hpp"
#include "cmd/selection/selection_options.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

/// How to print; `global` is what the global option says.
enum class AuditFormat { global, text, json, csv };

struct AuditOptions {
  AuditFormat format = AuditFormat::global;
  std::string name;
  std::string token;
  SelectionOptions selectors;
  audit::AuditRequest request;
  std::optional<std::int64_t> limit;
  bool stages = false;

  /// True for the list of people. One account or one batch alone is the subject of a history.
  bool lists_people() const {
    const auto& typed = selectors.typed;
    return !typed.outcomes.empty() || !typed.codes.empty() || !selectors.actions.empty() ||
           !typed.consumers.empty() || !typed.keys.empty() || !typed.mail.empty() ||
           typed.doubt != selection::Doubt::none || selectors.by_mailing() ||
           typed.batches.size() + selectors.accounts.size() > 1;
  }
};

/// The subject of the history; nullopt for everything.
using AuditSubject = std::optional<accounts::NamedSubject>;

std::string_view without_mark(std::string_view text) {
  return text.substr(!text.empty() && text.front() == token_mark ? 1 : 0);
}

AuditSubject subject_of(const AuditOptions& options) {
  const auto& accounts = options.selectors.accounts;
  const auto& batches = options.selectors.typed.batches;
  const auto given =
      (options.name.empty() ? 0U : 1U) + (options.token.empty() ? 0U : 1U) + accounts.size() + batches.size();
  if (given > 1) {
    throw Error(ExitCode::usage, "more than one account, token, batch or message given",
                "give one of NAME, --account, --token and --batch, or none for everything");
  }
  if (given == 1 && options.request.batches)
    throw Error(ExitCode::usage, "--batches cannot be combined with an account, token or batch",
                "their batches are always shown");
  if (!accounts.empty())
    return accounts::NamedSubject{
        .kind = accounts::NamedSubject::Kind::account, .id = 0, .name = accounts.front()};
  if (!options.token.empty()) return accounts::parse_token_subject(without_mark(options.token));
  if (!batches.empty())
    return accounts::NamedSubject{.kind = accounts::NamedSubject::Kind::batch, .id = batches.front()};
  return given == 0 ? AuditSubject{} : accounts::parse_subject(without_mark(options.name));
}

void check_list(const AuditOptions& options) {
  if (options.name.empty() && options.token.empty() && !options.request.batches && !options.stages) return;
  throw Error(ExitCode::usage, "a list of people takes selectors only",
              "give --account or --batch instead of NAME, and neither --token nor --batches nor --stages");
}

AuditFormat format_of(const AuditOptions& options, const Context& context) {
  if (options.format != AuditFormat::global) return options.format;
  return context.global().output == OutputFormat::json ? AuditFormat::json : AuditFormat::text;
}

template <typename Report>
void write(Context& context, const Report& report, AuditFormat format, std::int64_t limit) {
  const bool json = format == AuditFormat::json;
  const auto width = context.out().columns().value_or(0);
  context.print(json ? render_json(report) : render_text(report, width));
  const auto omitted = report.timeline.omitted;
  if (omitted > 0) context.log().warn("older entries are omitted", {{"omitted", omitted}, {"limit", limit}});
}

audit::StageSubject stage_subject(db::Connection& connection, const AuditSubject& subject) {
  if (!subject) return {};
  switch (subject->kind) {
    case accounts::NamedSubject::Kind::account:
      return {.account = named_account_id(connection, subject->name)};
    case accounts::NamedSubject::Kind::batch:
      return {.batch = subject->id};
    case accounts::NamedSubject::Kind::message:
      throw Error(ExitCode::usage, "--stages takes no message",
                  "mailroom audit message:N shows its tokens; give one of them, as token:N");
    default:
      return {.token = accounts::token_id_of(connection, *subject)};
  }
}

void write_stages(db::Connection& connection, const AuditSubject& subject, const audit::AuditRequest& request,
                  AuditFormat format, Context& context) {
  const auto report = audit::read_stages(connection, stage_subject(connection, subject), request);
  if (subject && report.tokens == 0) {
    throw Error(ExitCode::unusable, "there is no record of an emitted token",
                "without --stages mailroom audit shows what is on record");
  }
  const bool json = format == AuditFormat::json;
  context.print(json ? render_json(report) : render_text(report, context.out().width()));
}

void list_people(const AuditOptions& options, db::Connection& connection, AuditFormat format,
                 Context& context) {
  const reconcile::ReconcileRequest request{.queues = status::shown_queues(connection, context.settings()),
                                            .since = options.selectors.first_creation(),
                                            .until = options.selectors.until};
  print_people(context, connection, request, read_selection(connection, options.selectors),
               format == AuditFormat::csv    ? PeopleFormat::csv
               : format == AuditFormat::json ? PeopleFormat::json
                                             : PeopleFormat::text,
               options.limit);
}

ExitCode run_audit(const AuditOptions& options, Context& context) {
  const auto format = format_of(options, context);
  check_selection(options.selectors);
  if (options.lists_people()) {
    check_list(options);
    const auto connection = context.connect_to_schema("audit");
    const auto waits = context.watch_waits(*connection, "audit");
    list_people(options, *connection, format, context);
    return ExitCode::done;
  }
  if (format == AuditFormat::csv)
    throw Error(ExitCode::usage, "-o csv needs a list of people",
                "give --outcome, --mailed-since, --code, --action, --consumer or --key");
  const auto subject = subject_of(options);
  auto request = options.request;
  request.since = options.selectors.since;
  request.until = options.selectors.until;
  request.limit = options.limit.value_or(request.limit);
  const auto connection = context.connect_to_schema("audit");
  const auto waits = context.watch_waits(*connection, "audit");
  request.queues = status::shown_queues(*connection, context.settings());
  request.only_queue = request.queues.size() == 1 && status::names_queues(context.settings());
  if (options.stages) {
    write_stages(*connection, subject, request, format, context);
  } else if (!subject) {
    write(context, audit::read_overview(*connection, request), format, request.limit);
  } else {
    auto history = read_subject_history(*connection, *subject, request);
    add_steps(*connection, history);
    write(context, history, format, request.limit);
    if (history.has_older_messages)
      context.log().warn(
          "older messages are omitted; mailroom message list shows them, by --recipient or --reference",
          {{"limit", most_messages_of_history}});
  }
  return ExitCode::done;
}

Run add_audit(CommandSyntax& syntax) {
  auto options = std::make_shared<AuditOptions>();
  const config::Choices<AuditFormat> formats{
      {"text", AuditFormat::text}, {"json", AuditFormat::json}, {"csv", AuditFormat::csv}};
  syntax.text_or_token(
      "NAME", options->name,
      "show this account (id, email or login), token:N, batch:N, message:N, or the messages to this address or with this reference");
  syntax.choice("-o,--output FORMAT", options->format, formats, "text, json or csv",
                "print text, json or, for a list of people, csv");
  syntax.text("--token TOKEN", options->token, "show this token, by id or as it was mailed");
  syntax.number<std::int64_t>("--limit N", options->limit, {1, 1'000'000},
                              "show only the newest N entries [1000; of a list of people, all]");
  auto batches = syntax.flag("--batches", options->request.batches, "without NAME, show each batch as well");
  syntax.flag("--stages", options->stages, "show how long tokens took from stage to stage, and the slowest")
      .excludes(batches);
  add_selectors(syntax, options->selectors, "no NAME: 24h", "events, or of people tokens created,");
  add_mailing_selectors(syntax, options->selectors);
  return [options](Context& context) { return run_audit(*options, context); };
}

}  // namespace

const Command audit_command{
    "audit", "show the history of an account, a token, a batch, a message or everything",
    "Examples:\n"
    "  mailroom audit user1@mail.example    show when its tokens were emitted\n"
    "  mailroom audit token:1               show one token; batch:1 shows a batch\n"
    "  mailroom audit --outcome rejected,expired -o csv\n"
    "\n"
    "With --outcome, --code, --action, --consumer, --key, --mailed-since or several\n"
    "accounts or batches it lists the people whose tokens match, as mailroom reconcile\n"
    "--list does: account, login, address, token, outcome, time and reason. One --account or\n"
    "--batch alone shows its history, as NAME does. --stages shows where time went.\n",
    add_audit,
    "Shows the history of one account, token, batch or message: when a token was created and emitted, in which batch, "
    "by which collector and how often, what the relay, program or server answered to each delivery, when it expired or was consumed, "
    "and, if it was not emitted, why. "
    "NAME is the id, email or login of an account, token:N, batch:N, or a token as it was mailed. It may also be message:N, or the "
    "address or the reference of messages: then each is shown with what became of it for every recipient, first for the address that "
    "was asked for. A mailbox such as 'Ada <ada@example.org>' is its address. An address that an account had before is found by the "
    "record of mails, while that has not been pruned.\n\n"
    "It ends with the next step for whom was asked about: the command that mails again, resumes the queue or lifts the suspension.\n\n"
    "Without NAME it shows the events since --since: totals of emitted tokens, and every rewind, suspension, "
    "pruning and migration, with its actor and reason.\n\n"
    "--stages shows how long tokens took until they were committed, claimed, signed, and written or accepted by the receiver: "
    "percentiles, and the slowest tokens. Creation times have whole seconds, so the first stage is up to a second too "
    "long. Commits are known if the server keeps their times (track_commit_timestamp), until the token is consumed.\n\n"
    "Batch records are kept until prune deletes them: for audit.retention, and while their tokens exist."};

}  // namespace mailroom::cmd
