// Faults of `mailroom bounce --maildir`: its process is killed at any time, and each report counts once.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "crypto/digest.hpp"
#include "fault/trial_rig.hpp"
#include "mail/bounce_address.hpp"
#include "support/build_paths.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test {
namespace {

namespace fs = std::filesystem;

constexpr int reports_a_round = 300;
constexpr auto envelope = "bounce+{id}@app.example";

std::string hex_of(const crypto::Digest& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto byte : digest)
    text.append({digits[byte >> 4U], digits[byte & 15U]});
  return text;
}

/// A notification for each new token, some of them twice, and readers of the maildir one after the other.
class BounceTrial : public TrialRig {
 public:
  BounceTrial(const Cluster& cluster, const Plan& plan) : TrialRig(cluster, plan), connection_(connect()) {
    for (const auto* part : {"new", "cur", "tmp"})
      fs::create_directories(maildir_ / part);
    connection_->run("SELECT mailroom_want_outcomes(true)");
    home_ = connection_->run("SELECT mailroom_home_name()")[0][0].c_str();
  }

  /// Delivers the reports of a round, each third of them hard, each tenth of them twice.
  void deliver() {
    const auto prefix = "round" + std::to_string(++rounds_) + "-";
    insert_accounts(*connection_, reports_a_round, prefix);
    const auto mailed = connection_->run(
        "INSERT INTO mailroom_deliveries (queue, token, state, attempts, batch, accepted_at, address) "
        "SELECT (SELECT min(job_type) FROM jobs), t.id, 'accepted', 1, 1, now(), a.email "
        "FROM tokens t JOIN accounts a ON a.id = t.account WHERE a.email LIKE $1 RETURNING token, address",
        prefix + "%");
    for (const auto& row : mailed) {
      const auto token = row[0].as<std::int64_t>();
      const auto bytes = report_on(token, row[1].as<std::string>());
      reports_[hex_of(crypto::sha256({bytes}))] = token;
      put(std::to_string(token), bytes);
      if (token % 10 == 0) put(std::to_string(token) + "-again", bytes);
    }
  }

  void kill_reader(int number) {
    Subprocess reader(command(), environment(), log_, log_);
    // Either at any time after its start, or while it moves what it has recorded and begins the next.
    const auto left = unread();
    if (number % 2 == 0) eventually([&] { return unread() < left; });
    pause(0, number % 2 == 0 ? 8 : 250);
    reader.signal(SIGKILL);
    reader.wait();
  }

  Outcome finish() {
    auto once = command();
    once.emplace_back("--once");
    Subprocess reader(once, environment(), log_, log_);
    expect(reader.wait() == 0, "a reader that finishes the maildir ends with 0");
    outcome_.rounds = rounds_;
    outcome_.tally.committed = reports_.size();
    count_records();
    count_followed();
    expect(unread() == 0, "every report is moved to cur");
    note_logs({read_file(log_)});
    return outcome_;
  }

 private:
  std::vector<std::string> command() const {
    return {mailroom_binary, "bounce", "--maildir", maildir_.string()};
  }
  std::map<std::string, std::string> environment() const {
    return {{"MAILROOM_DATABASE_URL", conninfo()},
            {"MAILROOM_SECRET_KEY", test_key},
            {"MAILROOM_SEND_BOUNCE_ADDRESS", envelope}};
  }

  std::string report_on(std::int64_t token, const std::string& to) const {
    const std::string words = token % 3 == 0 ? "5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 user unknown"
                                             : "5.2.2\r\nDiagnostic-Code: smtp; 552 5.2.2 mailbox full";
    return "From: MAILER-DAEMON@mx.example\r\nTo: " + address_.address_with(address_.id_of(token, home_)) +
           "\r\nSubject: Undelivered Mail Returned to Sender\r\nMIME-Version: 1.0\r\n"
           "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n"
           "--b\r\nContent-Type: text/plain\r\n\r\nsorry\r\n"
           "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\n"
           "Final-Recipient: rfc822; " +
           to + "\r\nAction: failed\r\nStatus: " + words + "\r\n\r\n--b--\r\n";
  }

  void put(const std::string& name, const std::string& bytes) {
    std::ofstream(maildir_ / "tmp" / name, std::ios::binary) << bytes;
    fs::rename(maildir_ / "tmp" / name, maildir_ / "new" / name);
  }

  std::ptrdiff_t unread() const { return std::distance(fs::directory_iterator(maildir_ / "new"), {}); }

  /// Each report is on record once, for the token that it is about.
  void count_records() {
    std::set<std::string> found;
    for (const auto& row : connection_->run("SELECT encode(digest, 'hex'), token FROM mailroom_bounces")) {
      const auto report = reports_.find(row[0].as<std::string>());
      const bool is_right = report != reports_.end() && row[1].as<std::int64_t>(0) == report->second;
      if (!is_right) ++outcome_.tally.strange;
      if (is_right && !found.insert(report->first).second) ++outcome_.tally.repeated;
    }
    outcome_.tally.emitted = found.size();
    outcome_.tally.lost = reports_.size() - found.size();
    expect(outcome_.tally.lost == 0, "no report is lost");
    expect(outcome_.tally.strange == 0, "no report is recorded that did not come");
  }

  /// The application is told once of each, and the hard ones have suppressed their address.
  void count_followed() {
    for (const auto& row : connection_->run(
             "SELECT token, count(*) FROM mailroom_outcomes WHERE state = 'bounced' GROUP BY token"))
      outcome_.tally.repeated += row[1].as<std::size_t>() - 1;
    const auto told = value<std::size_t>(
        *connection_, "SELECT count(DISTINCT token) FROM mailroom_outcomes WHERE state = 'bounced'");
    outcome_.tally.lost += reports_.size() - std::min(told, reports_.size());
    expect(outcome_.tally.repeated == 0, "each report is judged once");
    expect(told == reports_.size(), "the application is told of each report");
    expect(
        value<bool>(*connection_,
                    "SELECT NOT EXISTS (SELECT FROM mailroom_bounces b FULL JOIN mailroom_suppressions s "
                    "ON s.address = lower(b.address) WHERE (b.kind = 'hard') IS DISTINCT FROM (s.address IS "
                    "NOT NULL))"),
        "the addresses of hard bounces are suppressed, and no others");
  }

  TemporaryDirectory directory_;
  fs::path maildir_ = directory_.path() / "bounces";
  std::string log_ = directory_.path() / "log";
  std::unique_ptr<db::Connection> connection_;
  std::string home_;
  mail::BounceAddress address_{envelope, crypto::Key::from_hex(test_key, "the trial")};
  std::map<std::string, std::int64_t> reports_;  ///< by digest, with the token that each is about
  int rounds_ = 0;
};

Outcome kill_reader(Cluster& cluster, const Plan& plan) {
  BounceTrial trial(cluster, plan);
  for (int round = 0; round < plan.rounds; ++round) {
    trial.deliver();
    trial.kill_reader(round);
  }
  return trial.finish();
}

}  // namespace

std::vector<Fault> bounce_faults() {
  return {{"bounces: kill -9 at random", "each report of a maildir is judged once", 100, 15, kill_reader}};
}

}  // namespace mailroom::test
