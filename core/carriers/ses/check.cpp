// What doctor sees of Amazon SES: credentials, clock, account and sender, by requests that send nothing.

#include <fmt/format.h>
#include <string>

#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "carriers/ses/answer.hpp"
#include "carriers/ses/carrier.hpp"
#include "mail/configured_mail.hpp"

namespace mailroom::ses {
namespace {

using Level = carriers::SinkFinding::Level;

bool flag_at(const nlohmann::json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

double number_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

/// A quota of -1 has no limit.
std::vector<carriers::SinkFinding> judge_quota(const nlohmann::json& quota) {
  const auto most = number_at(quota, "Max24HourSend");
  const auto sent = number_at(quota, "SentLast24Hours");
  const auto text =
      fmt::format("the account has sent {:.0f} mails of {:.0f} in the last 24 hours, at most {:g} a second",
                  sent, most, number_at(quota, "MaxSendRate"));
  if (most > 0 && sent >= most)
    return {{Level::failure, text, "wait, or ask AWS for a higher quota: mails wait in the queue"}};
  if (most > 0 && sent >= 0.8 * most)
    return {{Level::warning, text, "ask AWS for a higher quota before it is used up"}};
  return {{Level::fine, text}};
}

std::string hint_for_login(const SesError& error, const http::HttpResponse& response, std::int64_t now) {
  const auto lead = clock_lead(response, now);
  if (lead && std::chrono::abs(*lead) >= std::chrono::minutes(5))
    return "set the clock of this host, for example with systemd-timesyncd: a signature holds for five minutes";
  if (error.name.starts_with("ExpiredToken"))
    return "the session of the role has ended: write new credentials, or let the role of the host give them";
  if (error.name == "AccessDeniedException")
    return "give the user or the role the policy of docs/providers.md";
  return "check send.ses_credentials_file, and that its user has not been deleted: docs/providers.md says how to make a key";
}

/// Asks questions of an account, and turns what goes wrong into findings.
class SesInspection {
 public:
  SesInspection(const config::RelayPath& path, const mail::ConfiguredMail& mail)
      : path_(path), mail_(mail), endpoint_(parse_ses_endpoint(path)), exchange_(endpoint_.http) {}

  std::vector<carriers::SinkFinding> run() {
    if (!take_credentials()) return findings_;
    const auto account = ask("/v2/email/account");
    if (account.end != http::HttpEnd::answered) {
      note(
          Level::failure,
          fmt::format("{} cannot be reached: {}", endpoint_.http.name, printable(account.failure)),
          "check the region in send.relay and the network of this host; send.ca_file replaces the system's certificates");
      return findings_;
    }
    if (!judge_account(account)) return findings_;
    judge_sender();
    return findings_;
  }

 private:
  void note(Level level, std::string reason, std::string hint = {}) {
    findings_.push_back({.level = level,
                         .reason = std::move(reason),
                         .hint = std::move(hint),
                         .fix = {},
                         .endpoint = endpoint_.http.name});
  }

  bool take_credentials() try {
    credentials_ = credential_source(path_)();
    return true;
  } catch (const Error& error) {
    note(Level::failure, error.what(), error.hint());
    return false;
  }

  http::HttpOutcome ask(const std::string& path) {
    return exchange_.perform(ses_query(endpoint_, path, credentials_, in_seconds(wall_now())));
  }

  /// False if nothing more can be asked.
  bool judge_account(const http::HttpOutcome& outcome) {
    const auto& response = outcome.response;
    if (response.status / 100 == 2) {
      note(Level::fine, fmt::format("{} takes the credentials {}", endpoint_.http.name, credentials_.key_id));
      for (const auto& finding : judge_ses_account(response.body))
        note(finding.level, finding.reason, finding.hint);
      return true;
    }
    const auto now = in_seconds(wall_now());
    const auto error = parse_ses_error(response);
    const auto words = printable(error.text(response.status) + clock_words(response, now));
    if (error.name == "AccessDeniedException") {
      note(
          Level::warning,
          fmt::format("{} knows the credentials, which may not ask for the account: {}", endpoint_.http.name,
                      words),
          "add ses:GetAccount to the policy, as docs/providers.md has it, so that doctor sees sandbox and quota");
      return true;
    }
    note_refusal(error, response, now);
    return false;
  }

  /// Not every refusal of a question is one of the credentials.
  void note_refusal(const SesError& error, const http::HttpResponse& response, std::int64_t now) {
    const auto status = response.status;
    const auto words = printable(error.text(status) + clock_words(response, now));
    const auto& name = endpoint_.http.name;
    if (error.name == "AccountSuspendedException" || error.name == "SendingPausedException")
      return note(Level::failure, fmt::format("{} has suspended the account: {}", name, words),
                  "the account dashboard of SES says why; no setting here helps");
    if (is_throttle(error, status))
      return note(Level::warning, fmt::format("{} was asked too often: {}", name, words),
                  "run doctor again in a minute: whether the credentials are good was not asked");
    if (status / 100 == 5)
      return note(
          Level::warning, fmt::format("{} has a fault of its own, {}: {}", name, status, words),
          "run doctor again: whether the credentials are good was not asked, and the senders try again by "
          "themselves");
    if (is_about_login(error, status))
      return note(Level::failure,
                  fmt::format("{} refuses the credentials {}: {}", name, credentials_.key_id, words),
                  hint_for_login(error, response, now));
    note(Level::failure, fmt::format("{} does not answer as Amazon SES, {}: {}", name, status, words),
         "check the region in send.relay, send.ses_endpoint, and what is between this host and SES");
  }

  void judge_sender() {
    if (!mail_.from) return;
    const auto address = mail_.from->address.text();
    for (const auto& identity : {address, address.substr(address.rfind('@') + 1)}) {
      const auto outcome = ask("/v2/email/identities/" + percent_encoded(identity));
      const auto status = outcome.response.status;
      if (status / 100 == 2 && is_verified_identity(outcome.response.body))
        return note(Level::fine, fmt::format("{} is a verified identity", identity));
      const bool is_answer = outcome.end == http::HttpEnd::answered && (status / 100 == 2 || status == 404);
      if (!is_answer) {
        const auto error = parse_ses_error(outcome.response);
        const bool is_right = is_about_login(error, status);
        const auto words = outcome.end == http::HttpEnd::answered ? error.text(status) : outcome.failure;
        return note(
            Level::warning,
            fmt::format("whether {} is a verified identity cannot be asked: {}", identity, printable(words)),
            is_right ? "add ses:GetEmailIdentity to the policy, as docs/providers.md has it"
                     : "run doctor again: that says nothing of the identity");
      }
    }
    note(Level::failure, fmt::format("neither {} nor its domain is a verified identity", address),
         fmt::format("verify one of them at SES in {}, or set send.from to an address of a domain that is",
                     endpoint_.region));
  }

  const config::RelayPath& path_;
  const mail::ConfiguredMail& mail_;
  const SesEndpoint endpoint_;
  http::HttpExchange exchange_;
  AwsCredentials credentials_;
  std::vector<carriers::SinkFinding> findings_;
};

}  // namespace

std::vector<carriers::SinkFinding> judge_ses_account(std::string_view body) {
  const auto account = try_parse_json(body);
  if (!account.is_object())
    return {{Level::failure, "the answer to GET /v2/email/account is no JSON", "check send.ses_endpoint"}};
  std::vector<carriers::SinkFinding> findings;
  const auto status = account.value("EnforcementStatus", nlohmann::json());
  if (!flag_at(account, "SendingEnabled", true) || status == "SHUTDOWN") {
    findings.push_back({Level::failure, "SES has paused the sending of this account",
                        "the account dashboard of SES says why, and how to have it reviewed"});
  }
  if (status == "PROBATION") {
    findings.push_back({Level::warning, "SES has this account under review",
                        "the reputation metrics of SES say why: bounces or complaints are too many"});
  }
  if (!flag_at(account, "ProductionAccessEnabled", true)) {
    findings.push_back({Level::warning, "the account is in the sandbox: only verified recipients get mails",
                        "request production access in the account dashboard of SES, in this region"});
  }
  const auto quota = account.find("SendQuota");
  if (quota == account.end() || !quota->is_object()) return findings;
  for (auto& finding : judge_quota(*quota))
    findings.push_back(std::move(finding));
  return findings;
}

bool is_verified_identity(std::string_view body) {
  const auto identity = try_parse_json(body);
  return identity.is_object() && flag_at(identity, "VerifiedForSendingStatus", false);
}

std::vector<carriers::SinkFinding> check_ses(const config::RelayPath& path,
                                             const mail::ConfiguredMail& mail) {
  return SesInspection(path, mail).run();
}

}  // namespace mailroom::ses
