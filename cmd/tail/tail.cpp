// mailroom tail: the last events, and new ones as they are committed.

#include <algorithm>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/events/event_text.hpp"
#include "cmd/selection/selection_options.hpp"
#include "cmd/tail/tail_report.hpp"
#include "cmd/terminal/progress_bar.hpp"
#include "feed/event_feed.hpp"
#include "queue/preconditions.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/schema_objects.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::int64_t default_lines = 10;
constexpr std::chrono::minutes default_window{5};

struct TailOptions {
  feed::HistoryRequest history;
  bool follow = false;
  bool end = false;
  std::optional<Milliseconds> window;
  SelectionOptions selectors;
  std::optional<std::int64_t> count;
  std::vector<std::string> states;
  bool mask = false;
};

std::string read_state(const std::string& word) {
  const auto& known = feed::state_text();
  if (std::find(known.begin(), known.end(), word) != known.end()) return word;
  const auto meant = nearest_word(word, known);
  throw Error(ExitCode::usage, fmt::format("--state has an unknown state '{}'", word),
              meant.empty() ? fmt::format("states: {}", joined(known, ", ")) : "did you mean: " + meant);
}

/// The event that records an outcome. Others, such as `waiting`, no event tells of.
std::string state_of(fate::Outcome outcome) {
  const auto& known = feed::state_text();
  std::string word = fate::outcome_name(outcome);
  if (std::find(known.begin(), known.end(), word) != known.end()) return word;
  throw Error(ExitCode::usage, fmt::format("no event tells of the outcome {}", fate::outcome_text(outcome)),
              "mailroom audit --outcome " + word + " lists such tokens");
}

/// Reads the parts of the filter that need no database.
feed::EventFilter read_filter(const TailOptions& options) {
  feed::EventFilter filter;
  for (const auto& word : options.states)
    filter.states.push_back(read_state(word));
  for (const auto outcome : options.selectors.typed.outcomes)
    filter.states.push_back(state_of(outcome));
  filter.from_token = options.history.from_token.value_or(0);
  return filter;
}

/// Adds those parts that do.
void complete(feed::EventFilter& filter, const selection::Selection& selection) {
  const auto& actions = selection.actions;
  const bool is_one =
      !actions.empty() && std::count(actions.begin(), actions.end(), actions.front()) == std::ssize(actions);
  if (is_one) filter.action = actions.front();
  filter.accounts = selection.accounts;
  filter.selection = selection;
}

void check_together(const TailOptions& options) {
  const auto refuse = [](const std::string& message, const std::string& hint) {
    throw Error(ExitCode::usage, message, hint);
  };
  const auto& selectors = options.selectors;
  if (options.follow && options.end) {
    refuse("-f and -e cannot be combined", "give one of them");
  }
  if (!selectors.since.empty() && options.history.from_token) {
    refuse("--since and --from-id cannot be combined", "give one of them");
  }
  if (options.window && !options.follow) {
    refuse("--window needs -f", "it sets how late an event may be committed and still be shown");
  }
  if (!selectors.until.empty() && (options.follow || selectors.since.empty())) {
    refuse("--until needs --since, and excludes -f", "give the beginning of the period with --since");
  }
  if (!options.states.empty() && !selectors.typed.outcomes.empty()) {
    refuse("--state and --outcome cannot be combined", "--state takes the outcomes of deliveries, too");
  }
}

feed::HistoryRequest make_history(const TailOptions& options, const selection::Selection& selection) {
  auto history = options.history;
  history.since = selection.since;
  history.until = selection.until;
  if (!history.last && !history.since && !history.from_token) history.last = default_lines;
  return history;
}

/// Returns the line of an event.
using EventRenderer = std::function<std::string(const feed::Event&)>;

EventRenderer make_render(const TailOptions& options, Context& context,
                          const std::vector<std::string>& queues) {
  EventRenderer render;
  if (context.global().output == OutputFormat::json) {
    render = [](const feed::Event& event) { return render_json(event); };
  } else {
    const EventLines::Layout layout{.queue = queues.size() == 1 ? queues.front() : std::string(),
                                    .columns = context.out().columns(),
                                    .colour = context.colour_on(context.out())};
    render = [lines = EventLines(layout)](const feed::Event& event) mutable { return lines.render(event); };
  }
  if (!options.mask) return render;
  return [render](const feed::Event& event) { return render(masked(event)); };
}

std::unique_ptr<db::Connection> connect(const db::DatabaseTarget& target, const std::string& channel,
                                        const process::StopSignal& stop) {
  const auto check = [](db::Connection& connection) {
    schema::require_current_schema(connection);
    schema::require_all_rows(connection);
    queue::require_ids_to_spare(connection);
  };
  return feed::connect_reader(target, check, channel, &stop);
}

void show_events(const TailOptions& options, Context& context, feed::EventFilter filter) {
  process::StopSignal signal;
  process::SystemEnvironment environment(signal, context.out().fd());
  const auto& settings = context.settings();
  const auto target = db::configured_database(settings);
  std::unique_ptr<db::Connection> session;
  context.warn_of_visible_password();
  try {
    context.explain_unreachable(
        [&] { session = connect(target, options.follow ? settings.collect.channel : "", signal); });
  } catch (const db::ConnectionLost&) {
    if (!signal.requested()) throw;
    return;
  }
  const auto selection = read_selection(*session, options.selectors);
  complete(filter, selection);

  const auto render = make_render(options, context, status::shown_queues(*session, settings));
  const auto history = make_history(options, selection);
  const auto window = std::chrono::ceil<std::chrono::seconds>(options.window.value_or(default_window));
  feed::EventFeed feed(
      std::move(session), [&] { return connect(target, settings.collect.channel, signal); }, history,
      std::move(filter), window, context.log());
  PatientOutput output(context.out(), signal, [&] { feed.take_notifications(); });
  std::int64_t left = options.count.value_or(std::numeric_limits<std::int64_t>::max());
  feed.run(options.follow, environment, [&](const std::vector<feed::Event>& events) {
    std::string text;
    for (auto event = events.begin(); event != events.end() && left > 0; ++event, --left)
      text += render(*event);
    output.write(printable_lines(text));
    return left > 0;
  });
}

ExitCode run_tail(const TailOptions& options, Context& context) {
  check_together(options);
  const auto filter = read_filter(options);
  check_selection(options.selectors);
  try {
    show_events(options, context, filter);
  } catch (const ReaderGone&) {
    // A reader that closes the pipe is not a failure.
    return ExitCode::done;
  }
  return ExitCode::done;
}

Run add_tail(CommandSyntax& syntax) {
  auto options = std::make_shared<TailOptions>();
  syntax.number<std::int64_t>("-n,--lines N", options->history.last, {0, 1'000'000'000},
                              "show the last N events [10; with a start, all]");
  syntax.flag("-f,--follow", options->follow, "show new events until stopped");
  syntax.flag("-e,--end", options->end, "stop after the last event, as without -f");
  syntax.duration("--window DURATION", options->window, {std::chrono::seconds(1), std::chrono::hours(24)},
                  "with -f, show events committed up to this late [5m]");
  syntax.number<std::int64_t>("--from-id ID", options->history.from_token, {1}, "begin with this token");
  syntax.number<std::int64_t>("--count N", options->count, {1, 1'000'000'000}, "stop after N events");
  syntax.texts("--state STATE,...", options->states, "show only these states", ',')
      .offers(feed::state_text());
  syntax.flag("--mask", options->mask, "show addresses as u***@mail.example");
  add_selectors(syntax, options->selectors, "", "events");
  return [options](Context& context) { return run_tail(*options, context); };
}

}  // namespace

const Command tail_command{
    "tail", "show the last events, and follow new ones; read-only",
    "Examples:\n"
    "  mailroom tail                          show the last 10 events\n"
    "  mailroom tail -f --since 10m           show the last 10 minutes, then follow\n"
    "  mailroom tail -f --account user1 -o json\n"
    "\n"
    "Each event is shown once, as soon as it is committed. Its states:\n"
    "  created                                a token, whatever its state\n"
    "  due, consumed, wrong-status            a token, when it was first seen\n"
    "  expired                                a token that expired unsent\n"
    "  consumed                               a token, when it is consumed\n"
    "  emitted, skipped                       a batch: emitted, or no token was due\n"
    "  taken-over, dead                       a batch: leased again, or given up\n"
    "  delivery                               a mail, or a token handed over to a\n"
    "                                         program or server, whatever its outcome\n"
    "  accepted, deferred, rejected, unknown, expired, cancelled\n"
    "                                         such a delivery with this outcome\n"
    "  delivered, bounced, complained         what came back of a mail\n"
    "  suspended, restored                    an account\n"
    "  rewound, replayed, pruned              a queue, or old records\n"
    "  queue-created, queue-changed, dropped  a queue\n"
    "  paused, resumed                        a queue\n"
    "  budget-changed                         a rate that queues share\n"
    "  action-created, action-changed, action-retired\n"
    "                                         a kind of mail\n"
    "  reloaded                               a consumer took a configuration\n"
    "  went-back                              the database has an older state than a\n"
    "                                         consumer knew: a restore or a failover\n"
    "  revoked                                tokens that an operator ended\n"
    "  message-cancelled                      a message that is not sent\n"
    "  message-rescheduled                    a message that is sent at another time\n"
    "  adopted                                mails are sent from this database\n"
    "  forgotten                              addresses that were removed\n"
    "  address-suppressed, address-freed      addresses that get no more mails, or do\n"
    "  limit-changed                          how many mails a role may ask for\n"
    "  topic-created, topic-changed, topic-retired\n"
    "                                         what people can unsubscribe from\n"
    "  unsubscribed, resubscribed             addresses that get no more of a topic, or do\n"
    "  key-created, key-revoked               keys for mails over HTTP\n"
    "--outcome, --code, --batch and --consumer show batches and deliveries alone.\n"
    "mailroom audit --outcome skipped names whom a batch skipped.\n"
    "\n"
    "A created token is due unless its line says otherwise. The number before an\n"
    "address is the account's. With --account or --action a batch is shown if it\n"
    "holds such tokens, and these are named.\n"
    "\n"
    "With -f, tail re-reads the events of the last --window, and shows those not\n"
    "shown yet. It misses events that are older than that when they are committed:\n"
    "of a transaction that was open for longer, or with a consumed_at further in\n"
    "the past. It follows a standby too, by polling.\n",
    add_tail,
    "Shows the last events of the database and, with -f, new ones as they are committed: tokens created and "
    "consumed, batches emitted, deliveries with the answer of the relay, program or server, accounts suspended and restored, cursor moves, "
    "changes of queues. "
    "It only reads, holds no transaction open between polls, and resumes after a lost connection. It never "
    "shows secrets and codes; --mask masks addresses."};

}  // namespace mailroom::cmd
