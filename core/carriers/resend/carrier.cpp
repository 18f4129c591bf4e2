// Makes the request of a message: the JSON of its mails, and a key that is the same for the same mails.

#include "carriers/resend/carrier.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <utility>

#include "base/encoded_text.hpp"
#include "carriers/resend/answer.hpp"
#include "carriers/resend/endpoint.hpp"
#include "crypto/digest.hpp"

namespace mailroom::resend {
namespace {

std::string tags_of(const std::string& queue, std::int64_t token) {
  return fmt::format(R"([{{"name":"queue","value":"{}"}},{{"name":"token","value":"{}"}}])",
                     tag_text(queue, "_-", 256), token);
}

/// What Resend recognises a request by: the Message-ID of its first mail, for people, and a digest of the
/// Message-IDs, dates and contents of all. A mail that is sent again on purpose has another date, and another
/// Message-ID unless an application gave that.
std::string key_of(const std::string& message_ids, const std::string& body) {
  constexpr std::size_t longest_id = 180;  // of 256
  const auto digest = crypto::sha256({message_ids, body});
  std::string key = message_ids.substr(0, std::min(message_ids.find('\n'), longest_id));
  std::ranges::replace_if(
      key, [](unsigned char c) { return std::isgraph(c) == 0; }, '_');
  return key + '/' + hex_text(std::span(digest).first(16));
}

}  // namespace

std::string ResendProtocol::problem_of(const delivery::Message& message) const {
  if (!message.is_raw) return {};
  const auto part =
      message.envelope.from.empty() ? "an empty envelope sender" : inexpressible_part(message.body);
  if (part.empty()) return {};
  return fmt::format("Resend's API has no place for {}: use smtps://smtp.resend.com", part);
}

http::HttpRequest ResendProtocol::request(const delivery::Message& message, std::int64_t /*now*/) {
  const bool is_batch = !message.mails.empty();
  std::string ids;
  http::HttpRequest request{.url = endpoint_.url + (is_batch ? "/emails/batch" : "/emails")};
  const auto add = [&](std::string_view bytes, const delivery::Envelope& envelope, std::int64_t token) {
    auto mail = read_resend_mail(bytes, envelope, tags_of(message.queue, token));
    if (request.body.size() > 1) request.body += ',';
    request.body += mail.json;
    ids += mail.message_id + '\n' + mail.date + '\n';
  };
  if (is_batch) request.body = "[";
  std::size_t at = 0;
  for (const auto& mail : message.mails) {
    add(message.body.substr(at, mail.size), mail.envelope, mail.token);
    at += mail.size;
  }
  if (is_batch) {
    request.body += ']';
  } else {
    add(message.body, message.envelope, message.tokens.empty() ? 0 : message.tokens.front());
  }
  request.headers = {"Content-Type: application/json", "Authorization: Bearer " + read_resend_key(path_),
                     "Idempotency-Key: " + key_of(ids, request.body)};
  // One mail that it refuses must not stop the others.
  if (is_batch) request.headers.emplace_back("x-batch-validation: permissive");
  return request;
}

delivery::Answer ResendProtocol::judge(const delivery::Message& message, const http::HttpOutcome& outcome,
                                       std::int64_t now) {
  if (const auto rest = rest_of_limit(outcome.response)) next_request_ = steady_now() + *rest;
  return judge_resend(outcome, message.tokens, now);
}

std::unique_ptr<delivery::Carrier> make_resend_carrier(const config::RelayPath& path) {
  auto endpoint = parse_resend_endpoint(path);
  read_resend_key(path);
  auto protocol = std::make_unique<ResendProtocol>(endpoint, path);
  return std::make_unique<http::HttpCarrier>(std::move(endpoint), std::move(protocol), path.connections,
                                             path.connections);
}

extern const carriers::RelayFunctions resend_carrier;
const carriers::RelayFunctions resend_carrier{
    make_resend_carrier, check_resend, http::http_library, {.together = resend_batch, .recognises = true}};

}  // namespace mailroom::resend
