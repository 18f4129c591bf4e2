// mailroom audit: the history of an account, a token or a batch, or all that happened in a period.

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "accounts/account_lookup.hpp"
#include "accounts/token_lookup.hpp"
#include "base/text.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/command.hpp"
#include "crypto/token.hpp"
#include "status/queue_status.hpp"

namespace mailroom {
namespace {

struct AuditOptions {
  std::string name;
  std::string account;
  std::string token;
  std::string batch;
  AuditRequest request;
  bool stages = false;
};

/// The subject of the history.
struct AuditSubject {
  enum class Kind { everything, account, token, signed_token, batch };
  Kind kind = Kind::everything;
  std::int64_t id = 0;  ///< of a token or a batch
  std::string name{};   ///< of an account, or the text of a signed token
};

/// True if `text` may hold a complete secret, which no message may repeat.
bool may_hold_secret(std::string_view text) {
  return text.size() >= secret_text_size && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '+' || c == '/' || c == '=';
         });
}

std::string_view without_mark(std::string_view text) {
  return text.substr(!text.empty() && text.front() == token_mark ? 1 : 0);
}

AuditSubject signed_token(std::string_view text) {
  if (decode_token(text))
    return {.kind = AuditSubject::Kind::signed_token, .id = 0, .name = std::string(text)};
  throw Error(ExitCode::usage, "this looks like a token, but is not one",
              fmt::format("a token has {} characters of A-Z, a-z, 0-9, - and _; for an account with "
                          "such a name, type login:NAME",
                          token_size));
}

std::int64_t require_id(std::string_view what, std::string_view text) {
  if (const auto id = parse_id(text); id && *id < std::numeric_limits<std::int64_t>::max()) return *id;
  throw Error(ExitCode::usage,
              holds_token(text) ? fmt::format("a token is not the id of a {}", what)
                                : fmt::format("'{}' is not the id of a {}", text, what),
              fmt::format("ids are numbers, as in mailroom audit {}:51", what));
}

AuditSubject token_subject(std::string_view text) {
  if (may_hold_secret(text)) return signed_token(text);
  return {.kind = AuditSubject::Kind::token, .id = require_id("token", text)};
}

AuditSubject batch_subject(std::string_view text) {
  return {.kind = AuditSubject::Kind::batch, .id = require_id("batch", text)};
}

AuditSubject named_subject(std::string_view name) {
  constexpr std::string_view::size_type prefix = 6;
  if (name.starts_with("token:")) return token_subject(name.substr(prefix));
  if (name.starts_with("batch:")) return batch_subject(name.substr(prefix));
  if (may_hold_secret(name)) return signed_token(name);
  return {.kind = AuditSubject::Kind::account, .id = 0, .name = std::string(name)};
}

AuditSubject subject_of(const AuditOptions& options) {
  const int given = (options.name.empty() ? 0 : 1) + (options.account.empty() ? 0 : 1) +
                    (options.token.empty() ? 0 : 1) + (options.batch.empty() ? 0 : 1);
  if (given > 1) {
    throw Error(ExitCode::usage, "more than one account, token or batch given",
                "give one of NAME, --account, --token and --batch, or none for everything");
  }
  if (given == 1 && options.request.batches)
    throw Error(ExitCode::usage, "--batches cannot be combined with an account, token or batch",
                "their batches are always shown");
  if (!options.account.empty())
    return {.kind = AuditSubject::Kind::account, .id = 0, .name = options.account};
  if (!options.token.empty()) return token_subject(without_mark(options.token));
  if (!options.batch.empty()) return batch_subject(options.batch);
  return given == 0 ? AuditSubject{} : named_subject(without_mark(options.name));
}

/// Accepts the id of a deleted account, because its operations are still recorded.
std::int64_t account_id(Connection& connection, const std::string& name) {
  try {
    return find_accounts(connection, {name}).front().id;
  } catch (const Error& error) {
    const auto id = parse_id(std::string_view(name).substr(name.starts_with("id:") ? 3 : 0));
    if (error.code() != ExitCode::unusable || !id) throw;
    return *id;
  }
}

std::int64_t token_id(Connection& connection, const std::string& text) {
  if (const auto id = find_token_id(connection, decode_token(text)->secret)) return *id;
  throw Error(ExitCode::unusable, "this token is not in this database",
              "mailroom verify shows whether it is genuine");
}

History read_history(Connection& connection, const AuditSubject& subject, const AuditRequest& request) {
  switch (subject.kind) {
    case AuditSubject::Kind::account:
      return read_account_history(connection, account_id(connection, subject.name), request);
    case AuditSubject::Kind::batch:
      return read_batch_history(connection, subject.id, request);
    case AuditSubject::Kind::signed_token:
      return read_token_history(connection, token_id(connection, subject.name), request);
    default:
      return read_token_history(connection, subject.id, request);
  }
}

template <typename Report>
void write(Context& context, const Report& report, std::int64_t limit) {
  const bool json = context.global().output == OutputFormat::json;
  const auto width = context.out().columns().value_or(0);
  context.print(json ? render_json(report) : render_text(report, width));
  const auto omitted = report.timeline.omitted;
  if (omitted > 0) context.log().warn("older entries are omitted", {{"omitted", omitted}, {"limit", limit}});
}

StageSubject stage_subject(Connection& connection, const AuditSubject& subject) {
  switch (subject.kind) {
    case AuditSubject::Kind::everything:
      return {};
    case AuditSubject::Kind::account:
      return {.account = account_id(connection, subject.name)};
    case AuditSubject::Kind::batch:
      return {.batch = subject.id};
    case AuditSubject::Kind::signed_token:
      return {.token = token_id(connection, subject.name)};
    default:
      return {.token = subject.id};
  }
}

void write_stages(Connection& connection, const AuditSubject& subject, const AuditRequest& request,
                  Context& context) {
  const auto report = read_stages(connection, stage_subject(connection, subject), request);
  if (subject.kind != AuditSubject::Kind::everything && report.tokens == 0) {
    throw Error(ExitCode::unusable, "there is no record of an emitted token",
                "without --stages mailroom audit shows what is on record");
  }
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? render_json(report) : render_text(report, context.out().width()));
}

ExitCode run_audit(const AuditOptions& options, Context& context) {
  const auto subject = subject_of(options);
  auto request = options.request;
  // Refuses invalid moments before the command connects.
  parse_period(request.since, "", {});
  parse_period("", request.until, {});
  const auto connection = context.connect_to_schema("audit");
  const auto waits = context.watch_waits(*connection, "audit");
  request.queues = shown_queues(*connection, context.settings());
  request.only_queue = request.queues.size() == 1 && names_queues(context.settings());
  if (options.stages) {
    write_stages(*connection, subject, request, context);
  } else if (subject.kind == AuditSubject::Kind::everything) {
    write(context, read_overview(*connection, request), request.limit);
  } else {
    write(context, read_history(*connection, subject, request), request.limit);
  }
  return ExitCode::done;
}

Run add_audit(CommandSyntax& syntax) {
  auto options = std::make_shared<AuditOptions>();
  syntax.text_or_token("NAME", options->name, "show this account (id, email or login), token:N or batch:N");
  syntax.text("--account NAME", options->account, "show this account: also id:7, email:ADDRESS, login:NAME");
  syntax.text("--token TOKEN", options->token, "show this token, by id or as it was mailed");
  syntax.text("--batch N", options->batch, "show this batch");
  syntax.text("--since TIME", options->request.since, "begin at TIME: 2h, 2026-11-21T09:30 [no NAME: 24h]");
  syntax.text("--until TIME", options->request.until, "end before TIME");
  syntax.number<std::int64_t>("--limit N", options->request.limit, {1, 1'000'000},
                              "show only the newest N entries [1000]");
  auto batches = syntax.flag("--batches", options->request.batches, "without NAME, show each batch as well");
  syntax.flag("--stages", options->stages, "show how long tokens took from stage to stage, and the slowest")
      .excludes(batches);
  return [options](Context& context) { return run_audit(*options, context); };
}

}  // namespace

const Command audit_command{
    "audit", "show the history of an account, a token, a batch or everything",
    "Examples:\n"
    "  mailroom audit user1@mail.example    show when its tokens were emitted\n"
    "  mailroom audit token:1               show one token; batch:1 shows a batch\n"
    "  mailroom audit --stages              show where the time of tokens went\n",
    add_audit,
    "Shows the history of one account, token or batch: when a token was created and emitted, in which batch, "
    "by which collector and how often, what the relay, program or server answered to each delivery, when it expired or was consumed, "
    "and, if it was not emitted, why. "
    "NAME is the id, email or login of an account, token:N, batch:N, or a token as it was mailed.\n\n"
    "Without NAME it shows the events since --since: totals of emitted tokens, and every rewind, suspension, "
    "pruning and migration, with its actor and reason.\n\n"
    "--stages shows how long tokens took until they were committed, claimed, signed, and written or accepted by the other side: "
    "percentiles, and the slowest tokens. Creation times have whole seconds, so the first stage is up to a second too "
    "long. Commits are known if the server keeps their times (track_commit_timestamp), until the token is consumed.\n\n"
    "Batch records are kept until prune deletes them: for audit.retention, and while their tokens exist."};

}  // namespace mailroom
