// Faults of a relay's certificate and of its login: a sender that does not trust the relay mails nothing.

#include "fault/send_trial.hpp"
#include "support/test_certificate.hpp"

namespace mailroom::test {
namespace {

const std::string relay_user = "alice";
const std::string relay_password = "open sesame 4711";

/// A relay with STARTTLS and AUTH, which answers at one step of each new connection with a flaw while it has
/// one. The connections of before end at their next mail. Also what its senders need to trust it.
class FlawedRelay {
 public:
  /// Senders trust its own certificate, and `another`: what is wrong with that is nothing but its flaw.
  FlawedRelay(RelayStep step, RelayAnswer flaw, const TestCertificate* another = nullptr)
      : step_(step), flaw_(std::move(flaw)) {
    auto trusted = read_file(sound_.certificate());
    if (another != nullptr) trusted += read_file(another->certificate());
    ca_file_ = directory_.write("trusted.pem", trusted);
    password_file_ = directory_.write("password", relay_password + "\n");
  }

  SendTrial::Options options() {
    return {.writers = 2,
            .relay = {.play = [this](const RelayMoment& moment) { return play(moment); },
                      .certificate = &sound_,
                      .offers_starttls = true,
                      .user = relay_user,
                      .password = relay_password},
            .environment = {{"MAILROOM_SEND_CA_FILE", ca_file_},
                            {"MAILROOM_SEND_PASSWORD_FILE", password_file_}}};
  }
  void begin() { has_flaw_ = true; }
  void end() { has_flaw_ = false; }
  /// How many connections were shown the flaw.
  std::size_t shown() const {
    const std::lock_guard lock(mutex_);
    return flawed_.size();
  }
  bool is_safe(const TakenMail& mail) const {
    const std::lock_guard lock(mutex_);
    return mail.encrypted && mail.user == relay_user && flawed_.count(mail.connection) == 0;
  }

 private:
  RelayAnswer play(const RelayMoment& moment) {
    const std::lock_guard lock(mutex_);
    if (moment.step == step_) {
      // The last EHLO of a connection counts.
      if (!has_flaw_) {
        flawed_.erase(moment.connection);
        return {};
      }
      flawed_.insert(moment.connection);
      return flaw_;
    }
    const bool is_older = moment.step == RelayStep::mail && flawed_.count(moment.connection) == 0;
    return has_flaw_ && is_older ? RelayAnswer::reply("421 4.3.2 restarting", RelayAnswer::Then::close)
                                 : RelayAnswer{};
  }

  RelayStep step_;
  RelayAnswer flaw_;
  TestCertificate sound_;
  TemporaryDirectory directory_;
  std::string ca_file_;
  std::string password_file_;
  std::atomic<bool> has_flaw_ = false;
  mutable std::mutex mutex_;
  std::set<int> flawed_;
};

Outcome flawed_for_a_while(Cluster& cluster, const Plan& plan, FlawedRelay& relay) {
  SendTrial trial(cluster, plan, relay.options());
  trial.allow_no_other_attempt();
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.expect(trial.delivers_again(), "delivery resumes");
    const auto before = relay.shown();
    relay.begin();
    trial.expect(eventually([&] { return relay.shown() > before; }), "a sender meets the flaw");
    const auto waits = [&] {
      return value<int>(*connection,
                        "SELECT count(*) FROM mailroom_deliveries WHERE not_before IS NOT NULL") > 0;
    };
    trial.expect(eventually(waits), "mails wait");
    trial.pause(500, 3000);
    relay.end();
  }
  auto outcome = trial.finish(plan.rounds);
  for (const auto& mail : trial.taken()) {
    if (relay.is_safe(mail)) continue;
    outcome.problems.push_back("not so: each mail goes over TLS with a sound certificate and a login");
    break;
  }
  return outcome;
}

Outcome bad_certificate(Cluster& cluster, const Plan& plan, const TestCertificate::Options& options) {
  const TestCertificate bad(options);
  FlawedRelay relay(RelayStep::starttls, {.certificate = &bad}, &bad);
  return flawed_for_a_while(cluster, plan, relay);
}

Outcome expired_certificate(Cluster& cluster, const Plan& plan) {
  return bad_certificate(cluster, plan, {.subject = "old relay", .valid_from = -7200, .valid_until = -3600});
}

Outcome certificate_of_another(Cluster& cluster, const Plan& plan) {
  return bad_certificate(cluster, plan,
                         {.names = "DNS:other.example,IP:127.0.0.2", .subject = "other relay"});
}

Outcome no_auth(Cluster& cluster, const Plan& plan) {
  FlawedRelay relay(RelayStep::ehlo, RelayAnswer::reply("250-test relay\r\n250-STARTTLS\r\n250 8BITMIME"));
  return flawed_for_a_while(cluster, plan, relay);
}

}  // namespace

std::vector<Fault> relay_login_faults() {
  return {{"send: certificate expired for a while", "nothing is mailed meanwhile, each mail is accepted once",
           5, 1, expired_certificate},
          {"send: certificate of another name", "nothing is mailed meanwhile, each mail is accepted once", 5,
           1, certificate_of_another},
          {"send: no AUTH for a while", "nothing is mailed without a login, each mail is accepted once", 5, 1,
           no_auth}};
}

}  // namespace mailroom::test
