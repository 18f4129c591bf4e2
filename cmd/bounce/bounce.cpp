// mailroom bounce: reads what came back of mails that a relay had accepted, and records whose mail it was.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cmd/bounce/maildir.hpp"
#include "cmd/command.hpp"
#include "process/environment.hpp"
#include "process/stop_signal.hpp"
#include "suppression/bounce_records.hpp"

namespace mailroom {
namespace {

constexpr std::size_t reports_at_once = 500;
constexpr std::chrono::seconds look_again{1};

struct BounceOptions {
  std::vector<std::string> files;
  std::string maildir;
  bool once = false;
};

/// What has been read, to tell the log.
struct BounceCount {
  std::int64_t reports = 0;
  std::int64_t others = 0;  ///< mails that are no reports
  std::int64_t known = 0;   ///< recipients of reports that were read before
  std::int64_t hard = 0;
  std::int64_t suppressed = 0;
  std::int64_t unmatched = 0;
  std::int64_t unread = 0;

  void add(const RecordedBounce& bounce) {
    if (!bounce.is_new) ++known;
    if (!bounce.is_new) return;
    if (bounce.kind == "hard") ++hard;
    if (bounce.suppressed) ++suppressed;
    if (bounce.kind == "unread") ++unread;
    if (bounce.kind != "unread" && !bounce.token) ++unmatched;
  }
};

/// Somebody has to look at it: nothing was learnt from it.
bool needs_a_look(const RecordedBounce& bounce) {
  return bounce.kind == "unread" || !bounce.token;
}

std::string line_of(const RecordedBounce& bounce) {
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

std::string json_of(const RecordedBounce& bounce) {
  nlohmann::ordered_json line{{"kind", bounce.kind}, {"reason", bounce.reason}, {"reply", bounce.reply}};
  line["queue"] = bounce.queue.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(bounce.queue);
  line["token"] = optional_json<nlohmann::ordered_json>(bounce.token);
  line["address"] = bounce.address;
  line["suppressed"] = bounce.suppressed;
  line["new"] = bounce.is_new;
  return json_text(line) + "\n";
}

/// Judges reports by the keys and the pattern of the settings, and records them.
class BounceReader {
 public:
  BounceReader(Connection& connection, Context& context)
      : connection_(connection),
        context_(context),
        pattern_(context.settings().send.bounce_address),
        keys_(load_key_ring(context.settings())) {}

  Report judge(std::string_view bytes) const { return judge_report(bytes, pattern_, keys_); }

  /// What became of each recipient.
  std::vector<RecordedBounce> record(const std::string& source, const std::vector<Report>& reports) {
    auto recorded = record_bounces(connection_, source, reports);
    for (const auto& report : reports)
      ++(report.counts() ? count_.reports : count_.others);
    for (const auto& bounce : recorded)
      count_.add(bounce);
    return recorded;
  }

  void tell_count() {
    const auto count = std::exchange(count_, {});
    if (count.reports + count.others == 0) return;
    context_.log().info("read reports", {{"reports", count.reports},
                                         {"hard", count.hard},
                                         {"suppressed", count.suppressed},
                                         {"unmatched", count.unmatched},
                                         {"unread", count.unread},
                                         {"known", count.known},
                                         {"others", count.others}});
  }

 private:
  Connection& connection_;
  Context& context_;
  std::string pattern_;
  KeyRing keys_;
  BounceCount count_;
};

ExitCode read_files(const BounceOptions& options, BounceReader& reader, Context& context) {
  const std::vector<std::string> input{"-"};
  for (const auto& path : options.files.empty() ? input : options.files) {
    const auto bytes = read_report_file(path);
    // No mail server hands over a mail that begins so: it puts a header before what others wrote.
    const auto report = is_event(bytes) ? judge_event(bytes) : reader.judge(bytes);
    if (!report.counts()) {
      context.say(fmt::format("{}: neither a bounce nor a complaint nor an automatic reply\n",
                              path == "-" ? "stdin" : path));
      continue;
    }
    for (const auto& bounce : reader.record(path == "-" ? "stdin" : path, {report}))
      context.print(context.global().output == OutputFormat::json ? json_of(bounce) : line_of(bounce));
  }
  return ExitCode::done;
}

/// Reads the mails of a maildir, many in one transaction, and moves each when it is on record: whatever is
/// read again, as this process ended between the two, is recognised. Returns how many mails there were.
std::size_t read_some(const Maildir& maildir, const std::string& source, BounceReader& reader) {
  const auto names = maildir.unread(reports_at_once);
  std::vector<Report> reports;
  std::vector<std::string> read;
  for (const auto& name : names) {
    auto bytes = maildir.read(name);
    if (!bytes) continue;
    reports.push_back(reader.judge(*bytes));
    read.push_back(name);
  }
  const auto recorded = reader.record(source, reports);
  auto next = recorded.begin();
  for (std::size_t i = 0; i < reports.size(); ++i) {
    bool is_marked = !reports[i].counts();
    const auto rows =
        reports[i].counts() ? std::max<std::size_t>(reports[i].bounce->recipients.size(), 1) : 0;
    for (std::size_t row = 0; row < rows; ++row, ++next)
      is_marked = is_marked || needs_a_look(*next);
    maildir.move(read[i], is_marked);
  }
  return names.size();
}

ExitCode read_maildir(const BounceOptions& options, BounceReader& reader, StopSignal& stop) {
  const Maildir maildir(options.maildir);
  while (!stop.requested()) {
    if (read_some(maildir, options.maildir, reader) > 0) continue;
    reader.tell_count();
    if (options.once) break;
    stop.sleep_for(look_again);
  }
  reader.tell_count();
  return ExitCode::done;
}

ExitCode run_bounce(const BounceOptions& options, Context& context) {
  if (!options.maildir.empty()) {
    if (!options.files.empty())
      throw Error(ExitCode::usage, "files and --maildir are both given", "give one of the two");
    const Maildir maildir(options.maildir);
  }
  StopSignal stop;
  bool has_begun = false;
  while (true) {
    try {
      const auto connection =
          has_begun ? context.connect("bounce", &stop) : context.connect_to_schema("bounce", {}, &stop);
      has_begun = true;
      BounceReader reader(*connection, context);
      return options.maildir.empty() ? read_files(options, reader, context)
                                     : read_maildir(options, reader, stop);
    } catch (const ConnectionLost& error) {
      if (stop.requested()) return ExitCode::done;
      if (!has_begun || options.once || options.maildir.empty()) throw;
      context.log().warn("connection lost", {{"reason", error.what()}});
      stop.sleep_for(look_again);
    }
  }
}

Run add_bounce(CommandSyntax& syntax) {
  auto options = std::make_shared<BounceOptions>();
  auto maildir =
      syntax.text("--maildir DIR", options->maildir, "read the new mails of a maildir, and those that come");
  syntax.flag("--once", options->once, "with --maildir: read what is there, then stop").needs(maildir);
  syntax.texts("FILE", options->files, "read these reports instead of standard input").repeated();
  return [options](Context& context) { return run_bounce(*options, context); };
}

}  // namespace

const Command bounce_command{
    "bounce", "read bounces and complaints, and stop mailing addresses that do not exist",
    "Examples:\n"
    "  mailroom bounce < report.eml                       read one report\n"
    "  mailroom bounce --maildir bounces                  read reports as they come\n",
    add_bounce,
    "Reads what comes back of mails that a relay had accepted: delivery status notifications (RFC 3464), feedback reports "
    "(RFC 5965), automatic replies, and the events of Amazon SES and Resend, which are JSON. Finds whose mail it was by the id "
    "in the envelope sender (send.bounce_address), by the envelope id, by the Message-ID of the mail that it returns, or by the "
    "tags and the id that an event has, and records why it came back: audit shows it.\n\n"
    "A hard bounce, as of a mailbox that does not exist, suppresses the address: it gets no messages any more, and so it is "
    "after a complaint. A full mailbox or a policy suppresses nothing. Mails of security actions, such as a password "
    "recovery, still go to it. mailroom suppression shows and changes the list.\n\n"
    "Each report is judged once, however often it comes. --maildir reads the mails in DIR/new, many in one transaction, and moves "
    "them to DIR/cur; those of no mail that is known, and those that are not understood, are marked there for a look (F). An id is "
    "signed with the signing key: a report with one that somebody made up is of no mail that is known.\n\n"
    "With Postfix: bounce: \"|/usr/bin/mailroom bounce || exit 75\" in /etc/aliases, so that a report is kept while the "
    "database is down."};

}  // namespace mailroom
