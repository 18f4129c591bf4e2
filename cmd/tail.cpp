#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "accounts/account_lookup.hpp"
#include "base/moment.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/event_template.hpp"
#include "cmd/event_text.hpp"
#include "cmd/patient_output.hpp"
#include "cmd/tail_report.hpp"
#include "feed/event_stream.hpp"
#include "queue/foundations.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {
namespace {

constexpr std::int64_t default_lines = 10;

struct TailOptions {
  std::optional<std::int64_t> lines;
  bool follow = false;
  bool end = false;
  std::string since;
  std::optional<std::int64_t> from_id;
  std::optional<std::int64_t> count;
  std::string action;
  std::vector<std::string> accounts;
  std::vector<std::string> states;
  std::optional<std::string> line_template;
  bool mask = false;
};

std::int64_t read_moment(const std::string& text, std::int64_t now) {
  const auto moment = parse_moment(text, now);
  if (!moment) {
    throw Error(ExitCode::usage, fmt::format("--since is '{}', and must be a moment", text),
                "for example 10m, 2026-11-21 or 2026-11-21T09:30, in UTC");
  }
  return *moment;
}

std::string read_state(const std::string& word) {
  const auto& known = state_words();
  if (std::find(known.begin(), known.end(), word) != known.end()) return word;
  const auto meant = nearest_word(word, known);
  throw Error(ExitCode::usage, fmt::format("--state knows no '{}'", word),
              meant.empty() ? fmt::format("states: {}", fmt::join(known, ", ")) : "did you mean: " + meant);
}

/// What needs no database of the filter.
EventFilter read_filter(const TailOptions& options) {
  EventFilter filter;
  if (!options.action.empty()) filter.action = options.action;
  for (const auto& word : options.states)
    filter.states.push_back(read_state(word));
  filter.from_token = options.from_id.value_or(0);
  return filter;
}

void check_together(const TailOptions& options, OutputFormat output) {
  const auto refuse = [](const std::string& message, const std::string& hint) {
    throw Error(ExitCode::usage, message, hint);
  };
  if (options.follow && options.end) {
    refuse("-f goes on after the end, and -e stops there", "give one of them");
  }
  if (!options.since.empty() && options.from_id) {
    refuse("--since and --from-id both say where to begin", "give one of them");
  }
  if (options.line_template && output == OutputFormat::json) {
    refuse("--template and -o json both say how an event looks", "give one of them");
  }
}

HistoryRequest make_history(const TailOptions& options, std::int64_t now) {
  HistoryRequest history{.last = options.lines, .since = std::nullopt, .from_token = options.from_id};
  if (!options.since.empty()) history.since = read_moment(options.since, now);
  if (!history.last && !history.since && !history.from_token) history.last = default_lines;
  return history;
}

/// Turns an event into its line.
using EventRenderer = std::function<std::string(const Event&)>;

EventRenderer make_render(const TailOptions& options, Context& context) {
  EventRenderer render;
  if (options.line_template) {
    render = [line = EventTemplate(*options.line_template)](const Event& event) {
      return line.render(event);
    };
  } else if (context.global().output == OutputFormat::json) {
    render = [](const Event& event) { return render_json(event); };
  } else {
    const EventLines::Layout layout{.queue = context.settings().queue,
                                    .columns = context.out().columns(),
                                    .colour = context.colour_on(context.out())};
    render = [lines = EventLines(layout)](const Event& event) mutable { return lines.render(event); };
  }
  if (!options.mask) return render;
  return [render](const Event& event) { return render(masked(event)); };
}

std::unique_ptr<FeedSession> connect(const Settings& settings, bool follow) {
  auto session = std::make_unique<FeedSession>(settings.database_url, [](Connection& connection) {
    require_current_schema(connection);
    require_all_rows(connection);
    require_ids_to_spare(connection);
  });
  if (follow) session->follow(settings.channel);
  return session;
}

void tell_events(const TailOptions& options, Context& context, const EventRenderer& render,
                 EventFilter filter) {
  StopSignal signal;
  SystemSurroundings surroundings(signal, context.out());
  const auto& settings = context.settings();
  std::unique_ptr<FeedSession> session;
  context.warn_of_visible_password();
  context.explain_unreachable([&] { session = connect(settings, options.follow); });
  for (const auto& account : find_accounts(session->connection(), options.accounts))
    filter.accounts.push_back(account.id);

  EventFeed feed(make_history(options, session->now()), std::move(filter), context.log());
  EventStream stream(
      feed, std::move(session), [&] { return connect(settings, true); }, surroundings, context.log());
  PatientOutput output(context.out(), signal, [&] { stream.stay_awake(); });
  std::int64_t left = options.count.value_or(std::numeric_limits<std::int64_t>::max());
  stream.run(options.follow, [&](const std::vector<Event>& events) {
    std::string text;
    for (auto event = events.begin(); event != events.end() && left > 0; ++event, --left)
      text += render(*event);
    output.write(printable_lines(text));
    return left > 0;
  });
}

ExitCode run_tail(const TailOptions& options, Context& context) {
  check_together(options, context.global().output);
  const auto filter = read_filter(options);
  if (!options.since.empty()) read_moment(options.since, std::time(nullptr));
  const auto render = make_render(options, context);
  try {
    tell_events(options, context, render, filter);
  } catch (const Error& error) {
    // The reader has seen enough: as with any other tail, that is no failure.
    if (error.code() != ExitCode::output_closed || !context.out().reader_is_gone()) throw;
  }
  return ExitCode::done;
}

Run add_tail(CommandSyntax& syntax) {
  auto options = std::make_shared<TailOptions>();
  syntax.number<std::int64_t>("-n,--lines N", options->lines, {0, 1'000'000'000},
                              "the last N events [10; from a start on, all]");
  syntax.flag("-f,--follow", options->follow, "go on with what happens, until stopped");
  syntax.flag("-e,--end", options->end, "stop at the end, as without -f");
  syntax.text("--since MOMENT", options->since, "begin so long ago, or at a date and time in UTC");
  syntax.number<std::int64_t>("--from-id ID", options->from_id, {1},
                              "begin with this token, and what came after it");
  syntax.number<std::int64_t>("--count N", options->count, {1, 1'000'000'000}, "stop after N events");
  syntax.action(options->action, "activation or recovery tokens alone");
  syntax.texts("--account ACCOUNT", options->accounts, "of this id, email or login alone; repeatable");
  syntax.texts("--state WORD,...", options->states, "these states alone", ',').offers(state_words());
  syntax.text("--template TEXT", options->line_template, "a line of your own for each event");
  syntax.flag("--mask", options->mask, "show addresses as u***@mail.example");
  return [options](Context& context) { return run_tail(*options, context); };
}

}  // namespace

const Command tail_command{
    "tail", "show the last events, and follow tokens and batches as they happen; reads only",
    "Examples:\n"
    "  mailroom tail                          the last 10 events\n"
    "  mailroom tail -f --since 10m           from 10 minutes ago on, and what comes\n"
    "  mailroom tail -f --account user1 -o json\n"
    "\n"
    "Events come in the order in which they became visible, each of them once; what\n"
    "is committed late comes late. Their states:\n"
    "  created                                a token, whatever its state\n"
    "  due, expired, consumed, wrong-status   a token, when it was first seen\n"
    "  consumed                               a token, when it is consumed\n"
    "  emitted, passed-over                   a batch: handed on; none of it was due\n"
    "  taken-over, set-aside                  a batch: handed out again; given up\n"
    "  suspended, restored                    an account, whoever did it\n"
    "  rewound, replayed, pruned              a queue; old records\n"
    "A created token is due unless its line says otherwise. The number before an\n"
    "address is the account's. With --account or --action a batch is shown if it\n"
    "holds such tokens, and these are named.\n"
    "\n"
    "In a template {time}, {event}, {state}, {subject}, {token}, {action}, {account},\n"
    "{email}, {login}, {batch}, {queue}, {tokens}, {emitted}, {skipped}, {attempt},\n"
    "{by} and {reason} stand for what they say, or for - if there is none. {{ and }}\n"
    "are braces, \\n a new line, \\t a tabulator, \\\\ a backslash.\n"
    "\n"
    "A consumption is found by its consumed_at. One that an application sets more\n"
    "than 10 s before the server's clock at the start of its transaction, or more\n"
    "than an hour ahead of it, may be missed while following.\n",
    add_tail,
    "Shows the last events of the database and, with -f, goes on with those that come: tokens made and "
    "consumed, batches handed on, accounts suspended and restored, the cursor moved. It only reads, holds no "
    "transaction open, and after a lost connection goes on where it was. Secrets and codes are never shown, "
    "and with --mask no addresses."};

}  // namespace mailroom
