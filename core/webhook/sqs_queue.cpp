// The JSON protocol of SQS: each action is a signed POST to the root of the endpoint.

#include "webhook/sqs_queue.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/pattern.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "carriers/ses/answer.hpp"

namespace mailroom::webhook {
namespace {

using Json = nlohmann::json;

constexpr auto sqs_type = "application/x-amz-json-1.0";
constexpr std::size_t longest_answer = std::size_t{16} << 20;  // ten messages of 1 MiB, with escapes
constexpr auto queue_hint = "write it as https://sqs.eu-west-1.amazonaws.com/123456789012/ses-events";

/// `eu-west-1` of a host of SQS, also of one within a VPC. A server on this host, for tests, has any.
std::string region_of_host(const std::string& host, const std::string& url) {
  static const Pattern form(R"((.*\.)?sqs\.([a-z0-9-]+)\.(vpce\.)?amazonaws\.com(\.cn)?)");
  if (const auto parts = form.whole(host)) return (*parts)[2];
  if (url.starts_with("http://")) return "us-east-1";
  throw Error(ExitCode::configuration,
              fmt::format("--sqs {} is at no host of Amazon SQS", without_url_passwords(url)), queue_hint);
}

}  // namespace

SqsQueue::SqsQueue(const std::string& url, const config::Settings& settings)
    : url_(url), credentials_(ses::credential_source(settings.send.path)) {
  constexpr std::size_t longest_url = 1000;
  const auto scheme = url.find("://");
  const auto path = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  if (path == std::string::npos || url.size() > longest_url)
    throw Error(ExitCode::configuration, "--sqs is no URL of a queue", queue_hint);
  endpoint_ =
      http::parse_http_url(url, "--sqs", "requests are signed instead: see send.ses_credentials_file");
  endpoint_.url = url.substr(0, path) + "/";
  host_ = url.substr(scheme + 3, path - scheme - 3);
  region_ = region_of_host(host_.substr(0, host_.find(':')), url);
  endpoint_.ca_file = settings.send.path.ca_file;
  endpoint_.timeout = settings.send.path.timeout + std::chrono::seconds(wait_seconds);
  endpoint_.longest_answer = longest_answer;
}

std::vector<SqsMessage> SqsQueue::receive() {
  const auto answer = try_parse_json(ask(
      "ReceiveMessage",
      json_text(Json{{"QueueUrl", url_}, {"MaxNumberOfMessages", 10}, {"WaitTimeSeconds", wait_seconds}})));
  std::vector<SqsMessage> messages;
  const auto list = answer.is_object() ? answer.value("Messages", Json()) : Json();
  for (const auto& message : list.is_array() ? list : Json::array()) {
    messages.push_back({text_at(message, "ReceiptHandle"), text_at(message, "Body")});
  }
  return messages;
}

void SqsQueue::remove(const std::vector<std::string>& receipts) {
  if (receipts.empty()) return;
  auto entries = Json::array();
  for (const auto& receipt : receipts)
    entries.push_back({{"Id", std::to_string(entries.size())}, {"ReceiptHandle", receipt}});
  ask("DeleteMessageBatch", json_text(Json{{"QueueUrl", url_}, {"Entries", std::move(entries)}}));
}

std::string SqsQueue::ask(const std::string& action, const std::string& body) {
  const auto now = std::chrono::floor<std::chrono::seconds>(wall_now()).time_since_epoch().count();
  http::HttpRequest request{.body = body};
  request.headers =
      ses::signed_headers({.method = "POST",
                           .host = host_,
                           .path = "/",
                           .content_type = sqs_type,
                           .target = "AmazonSQS." + action,
                           .body = request.body},
                          credentials_.get(wall_now()), {.region = region_, .service = "sqs"}, now);
  auto outcome = http::HttpExchange(endpoint_).perform(std::move(request));
  if (outcome.end == http::HttpEnd::answered && outcome.response.status == 200)
    return std::move(outcome.response.body);
  const auto error = ses::parse_ses_error(outcome.response);
  const bool is_login = outcome.response.status != 0 && ses::is_about_login(error, outcome.response.status);
  if (is_login) credentials_.forget();
  const auto words = outcome.response.status == 0 ? outcome.failure : error.text(outcome.response.status);
  throw Error(ExitCode::failed, fmt::format("{} of {}: {}", action, endpoint_.name, shown_text(words)),
              is_login ? "the role or user needs sqs:ReceiveMessage and sqs:DeleteMessage on the queue"
                       : "check the URL of the queue and the network");
}

}  // namespace mailroom::webhook
