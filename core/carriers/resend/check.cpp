// What doctor sees of Resend: the key and the sender's domain, by a request that sends nothing.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "carriers/resend/answer.hpp"
#include "carriers/resend/carrier.hpp"
#include "carriers/resend/endpoint.hpp"
#include "mail/configured_mail.hpp"

namespace mailroom::resend {
namespace {

using Json = nlohmann::json;
using Level = carriers::SinkFinding::Level;

/// The status of the domain that mails of `host` leave from: it, or one that it is a part of. Empty without
/// one.
std::string status_of_domain(const std::string& body, const std::string& host) {
  const auto answer = try_parse_json(body);
  const auto domains = answer.is_object() ? answer.value("data", Json()) : Json();
  if (!domains.is_array()) return {};
  for (const auto& domain : domains) {
    const auto name = domain.is_object() ? domain.value("name", Json()) : Json();
    const auto status = domain.is_object() ? domain.value("status", Json()) : Json();
    if (name.is_string() && status.is_string() && lower_case(name.get<std::string>()) == lower_case(host))
      return status.get<std::string>();
  }
  return {};
}

carriers::SinkFinding judge_domain(const std::string& body, const std::string& host) {
  const auto status = status_of_domain(body, host);
  if (status == "verified") return {Level::fine, fmt::format("{} is a verified domain", host)};
  if (status.empty())
    return {
        Level::failure, fmt::format("Resend does not have the domain {}", host),
        "add it at Resend and set its DNS records, or set send.from to an address of a domain that is verified"};
  return {Level::failure,
          fmt::format("the domain {} is not verified: its status is {}", host, printable(status)),
          "set the DNS records that Resend shows for it, and let Resend verify them"};
}

/// Why the question was refused: not every refusal is one of the key.
carriers::SinkFinding judge_refusal(const std::string& name, const ResendError& error, int status) {
  const auto words = printable(error.text(status));
  if (is_suspended(error))
    return {Level::failure, fmt::format("{} has suspended the key or its account: {}", name, words),
            "ask Resend why; no setting here helps"};
  if (status == 429 && error.name.ends_with("_quota_exceeded"))
    return {Level::failure, fmt::format("{} says that the quota of the account is used up: {}", name, words),
            "wait, or get a larger quota: mails wait in the queue; whether the key is good was not asked"};
  if (status == 429)
    return {
        Level::warning, fmt::format("{} was asked too often: {}", name, words),
        "run doctor again in a minute: whether the key is good was not asked, and the senders slow down by themselves"};
  if (status / 100 == 5)
    return {
        Level::warning, fmt::format("{} has a fault of its own, {}: {}", name, status, words),
        "run doctor again: whether the key is good was not asked, and the senders try again by themselves"};
  if (is_about_key(error, status))
    return {Level::failure, fmt::format("{} refuses the key: {}", name, words),
            "check send.resend_key_file: the key may be deleted, or of another team"};
  if (status == 403)
    return {Level::failure, fmt::format("{} does not let the key ask for domains: {}", name, words),
            "see at Resend what the key may do, and whether the account is in order"};
  return {Level::failure, fmt::format("{} does not answer as the API of Resend, {}: {}", name, status, words),
          "check send.resend_endpoint, and what is between this host and Resend"};
}

}  // namespace

std::vector<carriers::SinkFinding> check_resend(const config::RelayPath& path,
                                                const mail::ConfiguredMail& mail) {
  const auto endpoint = parse_resend_endpoint(path);
  const auto key = read_resend_key(path);
  std::vector<carriers::SinkFinding> findings;
  const auto note = [&](carriers::SinkFinding finding) {
    finding.endpoint = endpoint.name;
    findings.push_back(std::move(finding));
    return findings;
  };
  http::HttpExchange exchange(endpoint);
  const auto outcome = exchange.perform(
      {.method = "GET", .url = endpoint.url + "/domains", .headers = {"Authorization: Bearer " + key}});
  const auto& response = outcome.response;
  if (outcome.end != http::HttpEnd::answered)
    return note({Level::failure,
                 fmt::format("{} cannot be reached: {}", endpoint.name, printable(outcome.failure)),
                 "check the network of this host; send.ca_file replaces the system's certificates"});
  const auto error = parse_resend_error(response);
  if (response.status / 100 != 2 && may_only_send(error))
    return note(
        {Level::fine, fmt::format("{} takes the key, which may only send mails: whether the domain of "
                                  "send.from is verified cannot be asked",
                                  endpoint.name)});
  if (response.status / 100 != 2) return note(judge_refusal(endpoint.name, error, response.status));
  note({Level::fine, fmt::format("{} takes the key", endpoint.name)});
  if (!mail.from) return findings;
  return note(judge_domain(response.body, mail.from->address.domain));
}

}  // namespace mailroom::resend
