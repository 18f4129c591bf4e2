// Maps classes of status codes to verdicts. Only a 2xx with JSON may name single tokens.

#include "carriers/http/answer.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <time.h>

#include "base/json.hpp"
#include "base/text.hpp"

namespace mailroom::http {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds longest_wait{86'400};

delivery::Verdict verdict_of(int status) {
  if (status / 100 == 2) return delivery::Verdict::accepted;
  if (status == 401 || status == 407) return delivery::Verdict::unavailable;
  if (status == 408 || status == 425 || status == 429) return delivery::Verdict::deferred;
  if (status / 100 == 5) return delivery::Verdict::deferred;
  return status / 100 == 4 ? delivery::Verdict::rejected : delivery::Verdict::unavailable;
}

std::string reply_of(const HttpResponse& response) {
  switch (response.status / 100) {
    case 2:
      return {};
    case 3:
      return redirection_words(response);
    default:
      return response.body;
  }
}

std::optional<delivery::Verdict> named_verdict(const Json& outcome) {
  if (outcome == "accepted") return delivery::Verdict::accepted;
  if (outcome == "deferred") return delivery::Verdict::deferred;
  if (outcome == "rejected") return delivery::Verdict::rejected;
  return std::nullopt;
}

}  // namespace

std::string redirection_words(const HttpResponse& response) {
  if (response.header("location").empty()) return "the server redirects, and names no address";
  return fmt::format("the server redirects to {}, which is not followed", response.header("location"));
}

std::optional<Milliseconds> parse_retry_after(std::string_view text, std::time_t now) {
  const auto value = trimmed(text);
  if (value.empty()) return std::nullopt;
  std::chrono::seconds wait{};
  if (const auto seconds = parse_number<std::uint32_t>(value)) {
    wait = std::chrono::seconds(*seconds);
  } else {
    std::tm date{};
    const std::string copy(value);
    const char* end = strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
    if (end == nullptr || *end != '\0') return std::nullopt;
    wait = std::chrono::seconds(timegm(&date) - now);
  }
  return std::clamp(wait, std::chrono::seconds(0), longest_wait);
}

std::vector<delivery::TokenVerdict> parse_token_outcomes(std::string_view body) {
  const auto answer = try_parse_json(body);
  const auto tokens = answer.is_object() ? answer.find("tokens") : answer.end();
  if (!answer.is_object() || tokens == answer.end() || !tokens->is_array()) return {};
  std::vector<delivery::TokenVerdict> verdicts;
  for (const auto& token : *tokens) {
    if (!token.is_object() || !token.contains("id") || !token["id"].is_number_integer()) continue;
    const auto verdict = named_verdict(token.value("outcome", Json()));
    if (!verdict) continue;
    verdicts.push_back({token["id"].get<std::int64_t>(), *verdict, text_at(token, "reason")});
  }
  return verdicts;
}

delivery::Answer judge_response(const HttpOutcome& outcome, std::time_t now) {
  const auto& [end, response, failure] = outcome;
  delivery::Answer answer;
  answer.code = response.status;
  if (end == HttpEnd::unsent) {
    answer.verdict = delivery::Verdict::unavailable;
    answer.code = 0;
    answer.reply = failure;
    return answer;
  }
  const bool is_success = response.status / 100 == 2;
  if (response.status == 0 || (end == HttpEnd::cut_off && is_success)) {
    answer.verdict = delivery::Verdict::unknown;
    answer.reply = failure;
    return answer;
  }
  answer.verdict = verdict_of(response.status);
  answer.reply = reply_of(response);
  answer.wait = parse_retry_after(response.header("retry-after"), now);
  answer.throttled = response.status == 429 || (response.status == 503 && answer.wait);
  answer.waits_for_turn = answer.throttled;
  if (is_success && response.is_json()) answer.tokens = parse_token_outcomes(response.body);
  return answer;
}

}  // namespace mailroom::http
