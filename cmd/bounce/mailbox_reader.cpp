// A mail that is on record and not filed, as the connection was cut or this process was killed in between, is
// fetched again: its record knows it.

#include "cmd/bounce/mailbox_reader.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::size_t mails_in_fetch = 50;
constexpr std::size_t mails_in_transaction = 500;
constexpr std::size_t begins_in_transaction = std::size_t{1} << 20;  ///< octets
constexpr std::chrono::seconds longest_mailbox_pause{60};

/// What was fetched, and waits for its record.
struct FetchedMails {
  std::vector<std::string> names{};
  std::vector<suppression::Report> reports{};
  std::size_t kept = 0;

  bool are_enough() const { return reports.size() >= mails_in_transaction || kept >= begins_in_transaction; }
};

void record_fetched(mailbox::Mailbox& mailbox, const std::string& source, BounceReader& reader,
                    FetchedMails& fetched) {
  if (fetched.names.empty()) return;
  const auto recorded = reader.record(source, fetched.reports);
  std::vector<mailbox::FiledMail> filed;
  auto next = recorded.begin();
  for (std::size_t i = 0; i < fetched.names.size(); ++i) {
    const auto& report = fetched.reports[i];
    auto filing = report.counts() ? mailbox::Filing::done : mailbox::Filing::other;
    for (auto rows = rows_of(report); rows > 0; --rows, ++next)
      if (needs_a_look(*next)) filing = mailbox::Filing::look;
    filed.push_back({.name = fetched.names[i], .filing = filing});
  }
  mailbox.file(filed);
  fetched = {};
}

/// Returns how many mails were listed.
std::size_t read_listed(mailbox::Mailbox& mailbox, const std::string& source, BounceReader& reader,
                        const process::StopSignal& stop) {
  const auto names = mailbox.list();
  if (names.empty()) return 0;
  FetchedMails fetched;
  for (std::size_t i = 0; i < names.size() && !stop.requested(); i += mails_in_fetch) {
    const auto part = std::span(names).subspan(i, std::min(mails_in_fetch, names.size() - i));
    mailbox.fetch(part, [&](const std::string& name, const std::string& bytes) {
      fetched.reports.push_back(reader.judge(bytes));
      fetched.kept += fetched.reports.back().begin.size();
      fetched.names.push_back(name);
    });
    if (fetched.are_enough()) record_fetched(mailbox, source, reader, fetched);
  }
  record_fetched(mailbox, source, reader, fetched);
  mailbox.finish();
  return names.size();
}

}  // namespace

std::string MailboxSource::name() const {
  const auto& url = imap.empty() ? pop3 : imap;
  const auto begin = url.find("://");
  const auto at = url.rfind('@');
  return url.substr(0, begin + 3) + url.substr(at == std::string::npos ? begin + 3 : at + 1);
}

std::unique_ptr<mailbox::Mailbox> MailboxSource::open(const config::Settings& settings,
                                                      const process::StopSignal& stop) const {
  auto is_stopped = [&stop] { return stop.requested(); };
  if (!imap.empty()) return mailbox::open_imap(imap, rules, settings, is_stopped);
  return mailbox::open_pop3(pop3, settings, is_stopped);
}

ExitCode read_mailbox(mailbox::Mailbox& mailbox, const MailboxSource& source, bool once, BounceReader& reader,
                      process::StopSignal& stop, Context& context) {
  Milliseconds pause = std::chrono::seconds(1);
  while (!stop.requested()) {
    try {
      const auto count = read_listed(mailbox, source.name(), reader, stop);
      pause = std::chrono::seconds(1);
      if (count > 0) continue;
      reader.tell_count();
      if (once) break;
      stop.sleep_for(mailbox.pause());
    } catch (const db::ConnectionLost&) {
      throw;
    } catch (const Error& error) {
      if (stop.requested()) break;
      if (once) throw;
      context.log().warn("the mailbox cannot be read", {{"reason", error.what()}});
      stop.sleep_for(pause);
      pause = std::min<Milliseconds>(2 * pause, longest_mailbox_pause);
    }
  }
  reader.tell_count();
  return ExitCode::done;
}

}  // namespace mailroom::cmd
