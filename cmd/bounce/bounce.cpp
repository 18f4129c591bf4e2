// mailroom bounce: reads what came back of mails that a relay had accepted, and records whose mail it was.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <future>
#include <iostream>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/bounce/bounce_reader.hpp"
#include "cmd/bounce/event_lines.hpp"
#include "cmd/bounce/event_sources.hpp"
#include "cmd/bounce/mail_file.hpp"
#include "cmd/bounce/mailbox_reader.hpp"
#include "cmd/bounce/maildir.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/tracing.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::size_t reports_at_once = 500;
constexpr std::size_t kept_at_once = std::size_t{1} << 20;
constexpr std::chrono::seconds look_again{1};

struct BounceOptions {
  std::vector<std::string> files;
  std::string maildir;
  MailboxSource mailbox;
  EventSources events;
  bool once = false;
  bool is_lines = false;

  /// It reads until it is stopped.
  bool is_service() const { return !maildir.empty() || mailbox.any() || events.any(); }
};

std::string line_of(const suppression::RecordedBounce& bounce) {
  const auto whose =
      bounce.token
          ? fmt::format("token {} of queue {}, {}", *bounce.token, bounce.queue, shown_text(bounce.address))
          : fmt::format("of no mail that is known{}",
                        bounce.address.empty() ? "" : ", to " + shown_text(bounce.address));
  return fmt::format(
      "{}: {}{}{}{}{}\n", whose, bounce.kind, bounce.kind == bounce.reason ? "" : ", " + bounce.reason,
      bounce.reply.empty() ? "" : ": " + shown_text(bounce.reply),
      bounce.suppressed ? "; the address is suppressed" : "", bounce.is_new ? "" : "; read before");
}

std::string json_of(const suppression::RecordedBounce& bounce) {
  nlohmann::ordered_json line{{"kind", bounce.kind}, {"reason", bounce.reason}, {"reply", bounce.reply}};
  line["queue"] = text_or_null<nlohmann::ordered_json>(bounce.queue);
  line["token"] = optional_json<nlohmann::ordered_json>(bounce.token);
  line["address"] = bounce.address;
  line["suppressed"] = bounce.suppressed;
  line["new"] = bounce.is_new;
  return json_text(line) + "\n";
}

void tell(const suppression::RecordedBounce& bounce, Context& context) {
  context.print(context.global().output == OutputFormat::json ? json_of(bounce) : line_of(bounce));
}

void read_file(std::istream& in, const std::string& name, BounceReader& reader, Context& context) {
  MailFile file(in);
  for (auto bytes = file.next(); bytes; bytes = file.next()) {
    // No mail server hands over a mail that begins so: it puts a header before what others wrote.
    auto read = bounce::is_event(*bytes) ? bounce::read_events(*bytes) : bounce::ReadEvents();
    const auto reports =
        bounce::is_event(*bytes) ? reader.judge(read.events) : std::vector{reader.judge(*bytes)};
    if (std::ranges::none_of(reports, &suppression::Report::counts)) {
      if (read.problem.empty()) read.problem = "neither a bounce nor a complaint nor an automatic reply";
      if (!read.unknown.empty())
        read.problem = "an event of a kind that is not known: " + read.unknown.front();
      context.say(fmt::format("{}: {}\n", name, shown_text(read.problem)));
      continue;
    }
    for (const auto& bounce : reader.record(name, reports))
      tell(bounce, context);
  }
}

ExitCode read_files(const BounceOptions& options, BounceReader& reader, Context& context) {
  const std::vector<std::string> input{"-"};
  const auto read = [&](std::istream& in, const std::string& name) {
    if (!options.is_lines) return read_file(in, name, reader, context);
    read_event_lines(in, name, reader,
                     [&](const suppression::RecordedBounce& bounce) { tell(bounce, context); });
  };
  for (const auto& path : options.files.empty() ? input : options.files) {
    if (path == "-") {
      read(std::cin, "stdin");
      continue;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(ExitCode::failed, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    read(file, path);
  }
  return ExitCode::done;
}

/// Mails of a maildir that are recorded in one transaction.
struct ReadMails {
  std::vector<std::string> names{};
  std::vector<suppression::Report> reports{};
  bool are_some_left = true;  ///< of those that were listed
};

ReadMails read_some(Maildir& maildir, BounceReader& reader) {
  ReadMails read;
  for (std::size_t kept = 0; read.reports.size() < reports_at_once && kept < kept_at_once;) {
    const auto name = maildir.next();
    read.are_some_left = name.has_value();
    if (!name) break;
    const auto bytes = maildir.read(*name);
    if (!bytes) continue;
    read.reports.push_back(reader.judge(*bytes));
    kept += read.reports.back().begin.size();
    read.names.push_back(*name);
  }
  return read;
}

/// Moves each mail when it is on record: whatever is read again, as this process ended between the two, is
/// recognised.
void record_some(const Maildir& maildir, const std::string& source, BounceReader& reader,
                 const ReadMails& read) {
  const auto recorded = reader.record(source, read.reports);
  auto next = recorded.begin();
  for (std::size_t i = 0; i < read.reports.size(); ++i) {
    const auto& report = read.reports[i];
    bool is_marked = !report.counts();
    for (auto rows = rows_of(report); rows > 0; --rows, ++next)
      is_marked = is_marked || needs_a_look(*next);
    maildir.move(read.names[i], is_marked);
  }
}

/// Reads mails until there are none, and the next of a backlog while the server records those before.
void read_backlog(Maildir& maildir, const std::string& source, BounceReader& reader,
                  process::StopSignal& stop) {
  auto read = read_some(maildir, reader);
  while (!read.names.empty() && !stop.requested()) {
    std::future<ReadMails> next;
    if (read.are_some_left) next = std::async(std::launch::async, [&] { return read_some(maildir, reader); });
    record_some(maildir, source, reader, read);
    read = next.valid() ? next.get() : ReadMails();
    if (read.names.empty()) read = read_some(maildir, reader);
  }
}

ExitCode read_maildir(const BounceOptions& options, BounceReader& reader, process::StopSignal& stop) {
  Maildir maildir(options.maildir);
  while (!stop.requested()) {
    read_backlog(maildir, options.maildir, reader, stop);
    reader.tell_count();
    if (options.once) break;
    stop.sleep_for(look_again);
  }
  return ExitCode::done;
}

void check_rules(const MailboxSource& mailbox) {
  const auto& rules = mailbox.rules;
  const char* const given = rules.removes                 ? "--delete"
                            : !rules.done_folder.empty()  ? "--done"
                            : !rules.other_folder.empty() ? "--others"
                                                          : nullptr;
  if (given != nullptr && mailbox.imap.empty())
    throw Error(ExitCode::usage, fmt::format("{} needs --imap", given),
                "POP3 has no folders: what is on record is removed, and the rest stays");
  if (rules.removes && !rules.done_folder.empty())
    throw Error(ExitCode::usage, "--done and --delete are both given", "give one of the two");
}

void check_sources(const BounceOptions& options) {
  const std::vector<std::pair<const char*, bool>> given{{"FILE", !options.files.empty()},
                                                        {"--maildir", !options.maildir.empty()},
                                                        {"--imap", !options.mailbox.imap.empty()},
                                                        {"--pop3", !options.mailbox.pop3.empty()},
                                                        {"--listen", !options.events.listen.empty()},
                                                        {"--sqs", !options.events.sqs.empty()}};
  const char* first = nullptr;
  for (const auto& [name, is_given] : given) {
    if (is_given && first != nullptr)
      throw Error(ExitCode::usage, fmt::format("{} and {} are both given", first, name),
                  "give one of the two");
    if (is_given) first = name;
  }
  if (options.is_lines && options.is_service())
    throw Error(ExitCode::usage, fmt::format("--jsonl and {} are both given", first), "give one of the two");
  if (options.once && options.maildir.empty() && !options.mailbox.any() && options.events.sqs.empty())
    throw Error(ExitCode::usage, "--once needs --maildir, --imap, --pop3 or --sqs",
                "give one of them, or leave --once out");
  check_rules(options.mailbox);
  if (!options.maildir.empty()) const Maildir maildir(options.maildir);
}

ExitCode run_bounce(const BounceOptions& options, Context& context) {
  check_sources(options);
  const auto events = open_event_source(options.events, options.once, context);
  const auto tracing = open_tracing(context.settings(), context.log());
  process::StopSignal stop;
  const auto mailbox = options.mailbox.any() ? options.mailbox.open(context.settings(), stop) : nullptr;
  bool has_begun = false;
  while (true) {
    try {
      const auto connection =
          has_begun ? context.connect("bounce", &stop) : context.connect_to_schema("bounce", {}, &stop);
      has_begun = true;
      BounceReader reader(*connection, context, tracing ? &tracing->tracer() : nullptr);
      if (events) return events->read(reader, stop);
      if (mailbox) return read_mailbox(*mailbox, options.mailbox, options.once, reader, stop, context);
      return options.maildir.empty() ? read_files(options, reader, context)
                                     : read_maildir(options, reader, stop);
    } catch (const db::ConnectionLost& error) {
      if (stop.requested()) return ExitCode::done;
      if (!has_begun || options.once || !options.is_service()) throw;
      context.log().warn("connection lost", {{"reason", error.what()}});
      stop.sleep_for(look_again);
    }
  }
}

Run add_bounce(CommandSyntax& syntax) {
  auto options = std::make_shared<BounceOptions>();
  syntax.text("--maildir DIR", options->maildir, "read the new mails of a maildir, and those that come");
  syntax.text("--imap URL", options->mailbox.imap,
              "read the mails of a mailbox that nobody has seen: imaps://user@host/INBOX");
  syntax.text("--done FOLDER", options->mailbox.rules.done_folder,
              "with --imap: move what is on record there [it is marked as seen]");
  syntax.text(
      "--others FOLDER", options->mailbox.rules.other_folder,
      "with --imap: move what is not ours, or not understood, there [it is marked as seen and flagged]");
  syntax.flag("--delete", options->mailbox.rules.removes, "with --imap: remove what is on record");
  syntax.text("--pop3 URL", options->mailbox.pop3,
              "read a mailbox, and remove what is on record: pop3s://user@host");
  syntax.text("--sqs URL", options->events.sqs, "read events of Amazon SES from this queue of SQS");
  syntax.flag("--once", options->once,
              "with --maildir, --imap, --pop3 or --sqs: read what is there, then stop");
  syntax.text(
      "--listen ADDRESS", options->events.listen,
      "take events of providers and reports of scripts by HTTP here: 127.0.0.1:8088, or the path of a unix socket");
  syntax.flag("--jsonl", options->is_lines,
              "read lines of JSON instead of mails: events and reports of scripts");
  syntax.texts("FILE", options->files, "read these reports instead of standard input").repeated();
  return [options](Context& context) { return run_bounce(*options, context); };
}

}  // namespace

const Command bounce_command{
    "bounce", "read bounces and complaints, and stop mailing addresses that do not exist",
    "Examples:\n"
    "  mailroom bounce < report.eml                       read one report\n"
    "  mailroom bounce --maildir bounces                  read reports as they come\n"
    "  mailroom bounce --imap imaps://me@mail.example     read them from a mailbox\n",
    add_bounce,
    "Reads what comes back of mails that a relay had accepted: delivery status notifications (RFC 3464), feedback reports "
    "(RFC 5965), automatic replies, and the events of providers, which are JSON: Amazon SES, Resend, Postmark, Mailgun, SendGrid, "
    "Brevo, Mailjet and SparkPost. Finds whose mail it was by the id in the envelope sender (send.bounce_address), in the "
    "envelope id or in a header that a provider keeps, by the Message-ID of the mail that it returns, or by the tags and the id "
    "that an event has, and records why it came back: audit shows it.\n\n"
    "A hard bounce, as of a mailbox that does not exist, suppresses the address: it gets no messages any more, and so it is "
    "after a complaint. A full mailbox or a policy suppresses nothing. Mails of security actions, such as a password "
    "recovery, still go to it. mailroom suppression shows and changes the list.\n\n"
    "Each report is judged once, however often it comes. --maildir reads the mails in DIR/new, many in one transaction, and moves "
    "them to DIR/cur; those of no mail that is known, and those that are not understood, are marked there for a look (F). An id is "
    "signed with the signing key: a report with one that somebody made up is of no mail that is known.\n\n"
    "--imap and --pop3 log in over TLS, with the password of bounce.password_file or the OAuth 2 token of bounce.token_file or "
    "bounce.token_command. A mail is marked, moved or removed after it is on record, and one that is met again, as the connection "
    "was cut in between, changes nothing. IMAP looks for unseen mails every 5 s, POP3 every 30 s, and leaves what is not ours.\n\n"
    "--listen takes what providers post, and refuses what has neither a signature nor a secret that the settings of bounce name, "
    "such as bounce.mailgun_secret_files. It confirms subscriptions of the topics of bounce.sns_topics. Let a web server with TLS "
    "pass the requests on. 200 is answered when all events of a request are on record, 400 if one is none of the provider's, and "
    "503 while the database is down and while the mail is not on record yet, so that the provider posts them again.\n\n"
    "--jsonl reads lines, each an event or a report that a script has made: {\"address\": \"ada@mail.example\", \"kind\": "
    "\"hard\", \"reason\": \"550 5.1.1 user unknown\", \"token\": 42}. It stops at a line that is none, with status 1. "
    "The function mailroom_report() takes the same in SQL, and --listen with a secret of bounce.report_secret_files.\n\n"
    "--sqs reads the events that SNS or EventBridge puts into a queue, with the credentials of Amazon SES. A message is deleted "
    "when its event is on record.\n\n"
    "With Postfix: bounce: \"|/usr/bin/mailroom bounce || exit 75\" in /etc/aliases, so that a report is kept while the "
    "database is down."};

}  // namespace mailroom::cmd
