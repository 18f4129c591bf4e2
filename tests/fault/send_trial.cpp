#include "fault/send_trial.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

/// The mails that the relay has taken, by the token that each is about.
std::map<std::int64_t, std::vector<TakenMail>> by_token(const std::vector<TakenMail>& mails) {
  std::map<std::int64_t, std::vector<TakenMail>> all;
  for (const auto& mail : mails)
    all[token_id_of(mail)].push_back(mail);
  return all;
}

bool are_the_same(const std::vector<TakenMail>& mails) {
  return std::all_of(mails.begin(), mails.end(), [&](const auto& mail) {
    return mail.message == mails.front().message && mail.to == mails.front().to;
  });
}

}  // namespace

SendTrial::SendTrial(Cluster& cluster, const Plan& plan, Options options)
    : options_(std::move(options)),
      database_(make_database(cluster)),
      conninfo_(cluster.conninfo(database_)),
      admin_(cluster.conninfo("postgres")),
      random_(plan.seed),
      // As nearly every relay does; tests/smtp has those that do not.
      relay_({.play = options_.play, .offers_pipelining = true}),
      // A broken protocol leaves tokens for ever.
      patience_(plan.sabotage == nullptr ? 120 : 10) {
  if (plan.sabotage != nullptr) break_protocol(*connect(), *plan.sabotage);
  for (int i = 0; i < options_.senders; ++i)
    senders_.push_back(make());
  for (const auto& each : senders_) {
    if (!each->connected()) throw std::runtime_error("a sender did not connect: " + each->log());
  }
  load_ = std::make_unique<WriteLoad>(conninfo_, options_.writers, plan.seed * 1000,
                                      WriteLoad::Options{.tolerant = true, .pause_ms = 40});
}

SendTrial::~SendTrial() {
  load_.reset();
  senders_.clear();
  Connection(admin_, "harness").run("DROP DATABASE IF EXISTS " + database_ + " WITH (FORCE)");
}

std::unique_ptr<TestSender> SendTrial::make() const {
  const auto relays = options_.first_relay.empty() ? relay_.url() : options_.first_relay + "," + relay_.url();
  return std::make_unique<TestSender>(
      conninfo_, relays, std::vector<std::string>{"--batch-limit", std::to_string(options_.limit)},
      options_.environment);
}

int SendTrial::replace(int index, int signal) {
  auto& place = senders_.at(static_cast<std::size_t>(index));
  place->process().signal(signal);
  const int status = place->process().wait();
  logs_.push_back(place->log());
  place = make();
  return status;
}

void SendTrial::pause(int from_ms, int to_ms) {
  std::this_thread::sleep_for(Milliseconds(draw(from_ms, to_ms)));
}

std::unique_ptr<Connection> SendTrial::connect() const {
  return std::make_unique<Connection>(conninfo_, "harness");
}

void SendTrial::expect(bool met, const std::string& what) {
  if (!met) outcome_.problems.push_back("not so: " + what);
}

bool SendTrial::drains() {
  const auto connection = connect();
  return eventually(
      [&] {
        connection->run(
            "UPDATE mailroom_deliveries SET not_before = clock_timestamp() WHERE not_before > clock_timestamp()");
        return is_drained(*connection) &&
               value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'deferred'") ==
                   0;
      },
      patience_);
}

Outcome SendTrial::finish(int rounds) {
  outcome_.rounds = rounds;
  load_.reset();
  expect(drains(), "every token reaches a final state");
  for (const auto& each : senders_) {
    // A sender that is still starting has no signal handler yet.
    expect(each->connected(), "a sender connects");
    const int status = each->stop();
    expect(status == 0, fmt::format("a sender ends with 0 ({})", status));
    logs_.push_back(each->log());
  }
  judge();
  if (!outcome_.problems.empty()) {
    for (const auto& log : logs_)
      outcome_.notes.push_back("log: " + log.substr(log.size() > 600 ? log.size() - 600 : 0));
  }
  return outcome_;
}

void SendTrial::judge() {
  const auto mails = by_token(relay_.taken());
  const auto connection = connect();
  auto& tally = outcome_.tally;
  int unlike = 0;
  int wrong = 0;
  for (const auto& [token, copies] : mails) {
    tally.repeated += copies.size() - 1;
    if (!are_the_same(copies)) ++unlike;
  }
  tally.emitted = mails.size();
  std::set<std::int64_t> known;
  for (const auto& row : connection->run(R"(
SELECT t.id, coalesce(d.state, ''), d.accepted_at IS NOT NULL
FROM tokens t LEFT JOIN mailroom_deliveries d ON d.queue = 'mailroom' AND d.token = t.id
WHERE t.expires_at > t.created_at)")) {
    const auto token = row[0].as<std::int64_t>();
    const bool was_mailed = mails.count(token) > 0;
    const auto state = row[1].as<std::string>();
    known.insert(token);
    if (!was_mailed && state != "rejected" && state != "expired" && state != "cancelled" &&
        state != "unknown")
      ++tally.lost;
    // What is recorded as accepted has been taken.
    if (row[2].as<bool>() && !was_mailed) ++wrong;
  }
  tally.committed = known.size();
  for (const auto& [token, copies] : mails)
    tally.strange += known.count(token) == 0 ? 1 : 0;
  expect(tally.committed > 0, "something was committed");
  expect(tally.lost == 0, "every token is mailed or has a final state");
  expect(tally.strange == 0, "no mail is about a token that is not committed");
  expect(wrong == 0, fmt::format("what is recorded as accepted has been taken ({} were not)", wrong));
  expect(unlike == 0, fmt::format("two mails about a token have the same bytes ({} have not)", unlike));
  expect(tally.repeated <= static_cast<std::size_t>(allowed_),
         fmt::format("at most {} mails are repeated", allowed_));
}

}  // namespace mailroom::test
