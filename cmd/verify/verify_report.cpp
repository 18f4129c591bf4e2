// The verdict as a word and as a sentence, and the token's record as text and as JSON.

#include "cmd/verify/verify_report.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

std::string fact(std::string_view label, const std::string& value) {
  return fmt::format("{:<10} {}\n", fmt::format("{}:", label), value);
}

/// The verdict as the first line shows it.
std::string sentence(const VerifyFinding& finding) {
  const auto word = verdict_word(finding);
  if (word == "malformed") return "malformed: " + finding.defect;
  if (word == "forged") {
    return std::string("not genuine: no key has signed it") + (finding.code_given ? " with this code" : "");
  }
  if (word == "genuine") return "genuine";
  if (word == "usable") return "genuine and usable";
  if (word == "not found") return "genuine, but not in this database";
  if (word == "wrong status")
    return fmt::format("genuine, but not usable: the account is {}",
                       finding.record->account ? shown_text(finding.record->account->status) : "missing");
  return "genuine, but not usable: " + word;
}

std::string emission_text(const accounts::TokenEmission& emission) {
  const auto when = emission.emitted_at ? precise_moment_text(*emission.emitted_at) : "not acknowledged yet";
  const auto times =
      emission.attempts > 1 ? fmt::format(", leased {} times", emission.attempts) : std::string();
  const auto doubt = emission.is_certain ? "" : ", unless that was another token with its id";
  return fmt::format("{} in batch {} of queue {}{}{}", when, emission.batch, shown_text(emission.queue),
                     times, doubt);
}

std::string render_record(const accounts::TokenRecord& record) {
  std::string text = fact("token", std::to_string(record.id));
  if (const auto& account = record.account)
    text += fact("account", fmt::format("{} ({}), {}", account->id, shown_text(account->login),
                                        shown_text(account->status)));
  if (const auto& message = record.message) {
    text += fact("message", message->recipient.empty()
                                ? std::to_string(message->id)
                                : fmt::format("{}, to {}", message->id, shown_text(message->recipient)));
    if (!message->reference.empty()) text += fact("reference", shown_text(message->reference));
  }
  text += fact("created", moment_text(record.created_at));
  text += fact("expires", moment_from(record.expires_at, record.now));
  text += fact("consumed", record.consumed_at ? moment_from(*record.consumed_at, record.now) : "no");
  if (record.emissions.empty()) text += fact("emitted", "no");
  for (const auto& emission : record.emissions)
    text += fact("emitted", emission_text(emission));
  return text;
}

Json record_json(const accounts::TokenRecord& record) {
  const auto emission_json = [](const accounts::TokenEmission& emission) -> Json {
    return {
        {"batch", emission.batch},
        {"queue", emission.queue},
        {"emitted_at", emission.emitted_at ? Json(precise_moment_text(*emission.emitted_at)) : Json(nullptr)},
        {"attempts", emission.attempts},
        {"certain", emission.is_certain}};
  };
  Json account = nullptr;
  if (record.account)
    account = {
        {"id", record.account->id}, {"login", record.account->login}, {"status", record.account->status}};
  Json object{{"id", record.id},
              {"account", account},
              {"created_at", moment_json<Json>(record.created_at)},
              {"expires_at", moment_json<Json>(record.expires_at)},
              {"consumed_at", record.consumed_at ? moment_json<Json>(*record.consumed_at) : Json(nullptr)},
              {"emissions", array_json<Json>(record.emissions, emission_json)}};
  if (const auto& message = record.message) {
    object["message"] = {{"id", message->id},
                         {"recipient", text_or_null<Json>(message->recipient)},
                         {"reference", text_or_null<Json>(message->reference)}};
  }
  return object;
}

}  // namespace

std::string verdict_word(const VerifyFinding& finding) {
  if (!finding.defect.empty()) return "malformed";
  if (!finding.verdict) return "forged";
  if (!finding.asked_database) return "genuine";
  if (!finding.record) return "not found";
  return finding.record->state == "due" ? "usable" : finding.record->state;
}

ExitCode judge(const VerifyFinding& finding) {
  const auto word = verdict_word(finding);
  if (word == "malformed" || word == "forged") return ExitCode::forged;
  return word == "genuine" || word == "usable" ? ExitCode::done : ExitCode::unusable;
}

std::string render_text(const VerifyFinding& finding, bool show_code) {
  std::string text = fact("verdict", sentence(finding));
  if (!finding.verdict) return text;
  const auto& verdict = *finding.verdict;
  text += fact("action", shown_text(finding.action));
  if (show_code && !verdict.code.empty()) text += fact("code", verdict.code);
  text += fact("key", fmt::format("{} ({})", verdict.key_fingerprint,
                                  verdict.is_current_key ? "current" : "previous"));
  if (finding.record) text += render_record(*finding.record);
  return text;
}

std::string render_json(const VerifyFinding& finding, bool show_code) {
  Json object{{"verdict", verdict_word(finding)}};
  if (!finding.defect.empty()) object["defect"] = finding.defect;
  if (finding.verdict) {
    const auto& verdict = *finding.verdict;
    object["action"] = finding.action;
    if (show_code && !verdict.code.empty()) object["code"] = verdict.code;
    object["key"] = {{"fingerprint", verdict.key_fingerprint}, {"current", verdict.is_current_key}};
  }
  if (finding.record) object["token"] = record_json(*finding.record);
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
