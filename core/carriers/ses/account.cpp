// Each fact of the account that stops mails is a finding with what to do.

#include "carriers/ses/account.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.hpp"

namespace mailroom {
namespace {

using Level = SinkFinding::Level;

bool flag_at(const nlohmann::json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

double number_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

/// A quota of -1 has no limit.
std::vector<SinkFinding> judge_quota(const nlohmann::json& quota) {
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

}  // namespace

std::vector<SinkFinding> judge_ses_account(std::string_view body) {
  const auto account = nlohmann::json::parse(body, nullptr, false);
  if (!account.is_object())
    return {{Level::failure, "the answer to GET /v2/email/account is no JSON", "check send.ses_endpoint"}};
  std::vector<SinkFinding> findings;
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
  const auto identity = nlohmann::json::parse(body, nullptr, false);
  return identity.is_object() && flag_at(identity, "VerifiedForSendingStatus", false);
}

}  // namespace mailroom
