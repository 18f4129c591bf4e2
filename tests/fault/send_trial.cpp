#include "fault/send_trial.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>

#include "fault/record_check.hpp"
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

TestRelay::Options relay_options(const SendTrial::Options& options) {
  auto relay = options.relay;
  relay.offers_pipelining = options.pipelining;
  return relay;
}

}  // namespace

SendTrial::SendTrial(Cluster& cluster, const Plan& plan, Options options)
    : options_(std::move(options)),
      database_(make_database(cluster)),
      conninfo_(cluster.conninfo(database_)),
      admin_(cluster.conninfo("postgres")),
      random_(plan.seed),
      relay_(relay_options(options_)),
      // A broken protocol leaves tokens for ever.
      patience_(plan.sabotage == nullptr ? options_.patience : std::chrono::seconds(10)) {
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
  auto relays = relay_.url(options_.relay.user);
  if (options_.first_relay != nullptr) relays = options_.first_relay->url() + "," + relays;
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

std::vector<TakenMail> SendTrial::taken() const {
  auto mails = relay_.taken();
  if (options_.first_relay == nullptr) return mails;
  const auto others = options_.first_relay->taken();
  mails.insert(mails.end(), others.begin(), others.end());
  return mails;
}

bool SendTrial::delivers_again() const {
  const auto before = taken().size();
  return eventually([&] { return taken().size() > before; });
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
  const auto mails = by_token(taken());
  const auto connection = connect();
  auto& tally = outcome_.tally;
  int unlike = 0;
  std::set<std::int64_t> mailed;
  for (const auto& [token, copies] : mails) {
    tally.repeated += copies.size() - 1;
    if (!are_the_same(copies)) ++unlike;
    mailed.insert(token);
  }
  tally.emitted = mails.size();
  judge_records(*connection, mailed);
  account_for_tokens(*connection, outcome_);
  expect(tally.committed > 0, "something was committed");
  expect(tally.lost == 0, "every token is mailed or has a final state");
  expect(tally.strange == 0, "no mail is about a token that is not committed");
  expect(unlike == 0, fmt::format("two mails about a token have the same bytes ({} have not)", unlike));
  expect(tally.repeated <= static_cast<std::size_t>(allowed_),
         fmt::format("at most {} mails are repeated", allowed_));
}

void SendTrial::judge_records(Connection& connection, const std::set<std::int64_t>& mailed) {
  auto& tally = outcome_.tally;
  int wrong = 0;
  int others = 0;
  std::int64_t expired = 0;  // before a claim could take them
  std::set<std::int64_t> known;
  for (const auto& row : connection.run(R"(
SELECT t.id, coalesce(d.state, ''), d.accepted_at IS NOT NULL, coalesce(d.attempts, 0),
       t.expires_at <= extract(epoch FROM clock_timestamp())
FROM tokens t LEFT JOIN mailroom_deliveries d ON d.queue = 'mailroom' AND d.token = t.id
WHERE t.expires_at > t.created_at)")) {
    const auto token = row[0].as<std::int64_t>();
    const bool was_mailed = mailed.count(token) > 0;
    const auto state = row[1].as<std::string>();
    known.insert(token);
    if (state.empty() && !was_mailed && row[4].as<bool>()) {
      ++expired;
    } else if (!was_mailed && state != "rejected" && state != "expired" && state != "cancelled" &&
               state != "unknown") {
      ++tally.lost;
    }
    // What is recorded as accepted has been taken.
    if (row[2].as<bool>() && !was_mailed) ++wrong;
    if (state != "accepted" || row[3].as<int>() != 1) ++others;
  }
  tally.committed = known.size();
  for (const auto token : mailed)
    tally.strange += known.count(token) == 0 ? 1 : 0;
  // The claims have counted these. A batch also counts those of its tokens that have expired when it is read.
  const auto counted = value<std::int64_t>(connection, R"(
SELECT coalesce(sum(skipped_expired), 0)
       - (SELECT count(*) FROM mailroom_deliveries WHERE state = 'expired' AND reply = 'the token has expired')
FROM mailroom_batches)");
  tally.lost += static_cast<std::size_t>(std::max(expired - counted, std::int64_t{0}));
  expect(expired <= counted, fmt::format("{} expired tokens are counted ({} are)", expired, counted));
  expect(wrong == 0, fmt::format("what is recorded as accepted has been taken ({} were not)", wrong));
  expect(others == 0 || !is_first_attempt_expected_,
         fmt::format("every mail is accepted at its first attempt ({} are not)", others));
}

bool is_chosen(const RelayMoment& moment, RelayStep step, int share) {
  return moment.step == step &&
         std::hash<std::string>()(moment.recipient) % static_cast<std::size_t>(share) == 0;
}

}  // namespace mailroom::test
