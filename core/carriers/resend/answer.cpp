// The names of errors decide, and the status where there is no name.

#include "carriers/resend/answer.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "carriers/http/answer.hpp"

namespace mailroom::resend {
namespace {

using Json = nlohmann::json;

/// Resend gives no time until a quota is free again.
constexpr std::chrono::minutes resend_quota_wait{10};
/// A request with the same key is still under way.
constexpr std::chrono::seconds concurrent_wait{1};

/// What is about the key, the domain of the sender or the endpoint, and not about this mail. For a key that
/// it does not know, Resend has answered 400 too.
bool is_about_account(const ResendError& error, int status) {
  return status == 401 || status == 403 || status == 404 || status == 405 || status / 100 == 3 ||
         is_one_of(error.name,
                   {"missing_api_key", "restricted_api_key", "invalid_api_key", "suspended_api_key",
                    "invalid_from_address", "invalid_access", "invalid_region"}) ||
         holds_in_any_case(error.message, "api key is invalid");
}

delivery::Answer judge_limit(const ResendError& error, const http::HttpResponse& response, std::int64_t now) {
  delivery::Answer answer;
  answer.wait = http::parse_retry_after(response.header("retry-after"), now);
  if (is_one_of(error.name, {"daily_quota_exceeded", "monthly_quota_exceeded"})) {
    if (!answer.wait) answer.wait = resend_quota_wait;
    return answer;
  }
  answer.verdict = delivery::Verdict::deferred;
  answer.throttled = answer.waits_for_turn = true;
  // The next request of this process waits as long anyway.
  if (answer.wait && *answer.wait <= std::chrono::seconds(5)) answer.wait.reset();
  return answer;
}

delivery::Answer judge_error(const ResendError& error, const http::HttpResponse& response, std::int64_t now) {
  const auto status = response.status;
  if (status == 429) return judge_limit(error, response, now);
  delivery::Answer answer;
  answer.wait = http::parse_retry_after(response.header("retry-after"), now);
  if (status / 100 == 5) {
    // Without a name it may come from a gateway that has lost the answer.
    answer.verdict = error.name.empty() ? delivery::Verdict::unknown : delivery::Verdict::deferred;
  } else if (status == 409) {
    // The request before may be taken yet, or was.
    answer.verdict = delivery::Verdict::unknown;
    answer.wait = std::max<Milliseconds>(answer.wait.value_or(Milliseconds(0)), concurrent_wait);
  } else if (is_about_account(error, status)) {
    answer.verdict = delivery::Verdict::unavailable;
    if (status == 400 || status == 403) answer.varies_with = delivery::VariesWith::sender;
  } else {
    answer.verdict = status == 408 ? delivery::Verdict::deferred : delivery::Verdict::rejected;
    if (answer.verdict == delivery::Verdict::rejected) answer.varies_with = delivery::VariesWith::message;
  }
  if (answer.varies_with != delivery::VariesWith::nothing) answer.refusal = error.text(status);
  return answer;
}

/// The ids of the mails that were taken, in their order; those that were not are in `errors` with their
/// index.
delivery::Answer judge_batch(const Json& body, const std::vector<std::int64_t>& tokens) {
  delivery::Answer answer{.verdict = delivery::Verdict::accepted};
  const auto at = [&](const char* key) { return body.is_object() ? body.value(key, Json()) : Json(); };
  const auto ids = at("data");
  const auto errors = at("errors");
  std::vector<std::string> refusals(tokens.size());
  std::size_t refused = 0;
  for (const auto& error : errors.is_array() ? errors : Json::array()) {
    const auto index = error.is_object() ? error.value("index", Json()) : Json();
    if (!index.is_number_unsigned() || index.get<std::size_t>() >= tokens.size()) continue;
    auto& refusal = refusals[index.get<std::size_t>()];
    if (refusal.empty()) ++refused;
    const auto words = text_at(error, "message");
    refusal = words.empty() ? "refused without words" : words;
  }
  if (!ids.is_array() || ids.size() + refused != tokens.size()) {
    return {.verdict = delivery::Verdict::unknown,
            .reply = "the answer does not say what became of each mail"};
  }
  auto id = ids.begin();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (refusals[i].empty()) {
      answer.tokens.push_back({tokens[i], delivery::Verdict::accepted, text_at(*id++, "id")});
    } else {
      answer.tokens.push_back({tokens[i], delivery::Verdict::rejected, refusals[i], 0});
    }
  }
  return answer;
}

delivery::Answer judge_success(const http::HttpResponse& response, const std::vector<std::int64_t>& tokens) {
  const auto body = try_parse_json(response.body);
  if (tokens.size() > 1) return judge_batch(body, tokens);
  const auto id = text_at(body, "id");
  if (id.empty()) return {.verdict = delivery::Verdict::unknown, .reply = "the answer has no id"};
  return {.verdict = delivery::Verdict::accepted, .reply = id};
}

}  // namespace

std::string ResendError::text(int status) const {
  if (name.empty() && message.empty()) return fmt::format("status {}, without words", status);
  if (name.empty() || message.empty()) return name + message;
  return fmt::format("{}: {}", name, message);
}

ResendError parse_resend_error(const http::HttpResponse& response) {
  const auto body = try_parse_json(response.body);
  ResendError error{.name = text_at(body, "name"), .message = text_at(body, "message")};
  if (error.name.empty() && error.message.empty()) error.message = trimmed(response.body);
  return error;
}

bool is_about_key(const ResendError& error, int status) {
  return status == 401 || is_one_of(error.name, {"missing_api_key", "invalid_api_key"}) ||
         holds_in_any_case(error.message, "api key is invalid");
}

bool is_suspended(const ResendError& error) {
  return error.name == "suspended_api_key" || holds_in_any_case(error.message, "suspended") ||
         holds_in_any_case(error.message, "deactivated");
}

bool may_only_send(const ResendError& error) {
  return error.name == "restricted_api_key";
}

std::optional<Milliseconds> rest_of_limit(const http::HttpResponse& response) {
  constexpr std::chrono::seconds longest{10};
  const auto after = http::parse_retry_after(response.header("retry-after"), 0);
  if (response.status == 429 && after) return std::min<Milliseconds>(*after, longest);
  if (parse_number<std::uint32_t>(trimmed(response.header("ratelimit-remaining"))) != 0U) return std::nullopt;
  const auto reset = parse_number<std::uint32_t>(trimmed(response.header("ratelimit-reset")));
  if (!reset) return std::nullopt;
  return std::min<Milliseconds>(std::chrono::seconds(*reset), longest);
}

delivery::Answer judge_resend(const http::HttpOutcome& outcome, const std::vector<std::int64_t>& tokens,
                              std::int64_t now) {
  const auto& response = outcome.response;
  const bool is_success = response.status / 100 == 2;
  delivery::Answer answer;
  if (outcome.end == http::HttpEnd::unsent) {
    answer.reply = outcome.failure;
    return answer;
  }
  if (response.status == 0 || (outcome.end == http::HttpEnd::cut_off && is_success)) {
    answer = {.verdict = delivery::Verdict::unknown, .reply = outcome.failure};
  } else if (is_success) {
    answer = judge_success(response, tokens);
  } else if (outcome.end == http::HttpEnd::cut_off) {
    // It was not taken, and the reason was lost.
    answer = {.verdict = delivery::Verdict::deferred, .reply = outcome.failure};
  } else {
    const auto error = parse_resend_error(response);
    answer = judge_error(error, response, now);
    answer.reply =
        response.status / 100 == 3 ? http::redirection_words(response) : error.text(response.status);
  }
  answer.code = response.status;
  return answer;
}

}  // namespace mailroom::resend
