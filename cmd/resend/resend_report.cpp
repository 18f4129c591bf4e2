// Lays out the plan of a resend, and says of nobody that he is mailed again who was not mailed before.

#include "cmd/resend/resend_report.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, replay::resend_choices> labels{
    "to be sent",
    "waiting, sent without this",
    "expired",
    "consumed",
    "account in the wrong status",
    "replaced by a newer token",
    "revoked",
    "of an action that the queue does not take"};

constexpr std::array<replay::ResendChoice, replay::resend_choices> all_choices{
    replay::ResendChoice::sent,     replay::ResendChoice::waiting,      replay::ResendChoice::expired,
    replay::ResendChoice::consumed, replay::ResendChoice::wrong_status, replay::ResendChoice::replaced,
    replay::ResendChoice::revoked,  replay::ResendChoice::untaken};

std::int64_t counted_by(const std::vector<replay::ResendPlan>& plans, replay::ResendChoice choice) {
  std::int64_t sum = 0;
  for (const auto& plan : plans)
    sum += plan.count(choice);
  return sum;
}

std::int64_t taken_by(const replay::ResendPlan& plan) {
  std::int64_t sum = 0;
  for (const auto choice : all_choices)
    sum += choice == replay::ResendChoice::untaken ? 0 : plan.count(choice);
  return sum;
}

std::string render_queue(const replay::ResendPlan& plan) {
  TextTable table({{"tokens"}, {"count", TextTable::Align::right}});
  for (const auto choice : all_choices) {
    const auto count = plan.count(choice);
    if (count == 0 && choice != replay::ResendChoice::sent) continue;
    table.add({std::string(labels.at(static_cast<std::size_t>(choice))), with_thousands(count)});
  }
  return fmt::format("queue:   {}\n\n{}\n", shown_text(plan.queue), table.render(80));
}

replay::SentBefore before_of(const std::vector<replay::ResendPlan>& plans) {
  replay::SentBefore sum;
  for (const auto& plan : plans) {
    sum.accepted += plan.before.accepted;
    sum.maybe += plan.before.maybe;
    sum.emitted += plan.before.emitted;
  }
  return sum;
}

std::int64_t revived_by(const std::vector<replay::ResendPlan>& plans) {
  std::int64_t sum = 0;
  for (const auto& plan : plans)
    sum += plan.revived;
  return sum;
}

/// `2 expired, 1 consumed`, most first.
std::string reasons_text(const std::vector<replay::ResendPlan>& plans, bool untaken) {
  std::vector<std::pair<std::int64_t, std::string_view>> reasons;
  for (const auto choice : all_choices) {
    const auto count = counted_by(plans, choice);
    if (count > 0 && (choice == replay::ResendChoice::untaken) == untaken)
      reasons.emplace_back(count, labels.at(static_cast<std::size_t>(choice)));
  }
  std::ranges::stable_sort(reasons, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [count, label] : reasons)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(count), label);
  return text;
}

std::string help_for(const std::vector<replay::ResendPlan>& plans) {
  if (counted_by(plans, replay::ResendChoice::expired) > 0)
    return "--extend 15m gives what has expired 15 minutes more, and sends it";
  if (counted_by(plans, replay::ResendChoice::wrong_status) > 0)
    return "mailroom audit NAME shows the status of an account; mailroom suspend --undo lifts a suspension";
  if (counted_by(plans, replay::ResendChoice::replaced) > 0)
    return "name an older token itself, as token:N, to send it all the same";
  if (counted_by(plans, replay::ResendChoice::untaken) > 0)
    return "mailroom queue list shows which queue takes which action; name one with --queue";
  return "have the application request a new token";
}

}  // namespace

std::int64_t sent_by(const std::vector<replay::ResendPlan>& plans) {
  return counted_by(plans, replay::ResendChoice::sent);
}

std::int64_t matched_by(const std::vector<replay::ResendPlan>& plans) {
  std::int64_t sum = 0;
  for (const auto choice : all_choices)
    sum += counted_by(plans, choice);
  return sum;
}

std::string sent_before_text(const replay::SentBefore& before, std::int64_t sent) {
  if (sent == 0) return "";
  const auto part = [&](std::int64_t count, std::string_view one, std::string_view several) {
    if (count == 0) return std::string();
    const auto which =
        count == sent ? (sent == 1 ? std::string("It") : "All") : with_thousands(count) + " of them";
    return fmt::format("{} {}\n", which, count == 1 ? one : several);
  };
  const auto text =
      part(before.accepted, "was accepted before: the same person is mailed again.",
           "were accepted before: the same people are mailed again.") +
      part(before.maybe, "may have been accepted before: the log of the relay, program or server shows it.",
           "may have been accepted before: the log of the relay, program or server shows it.") +
      part(before.emitted,
           "was emitted to a consumer that records no outcomes: its reader knows whether it was mailed.",
           "were emitted to a consumer that records no outcomes: its reader knows whether they were mailed.");
  if (!text.empty()) return text;
  return sent == 1 ? "It was not accepted before.\n" : "None of them was accepted before.\n";
}

std::vector<std::int64_t> sent_tokens(const std::vector<replay::ResendPlan>& plans) {
  std::vector<std::int64_t> tokens;
  for (const auto& plan : plans)
    tokens.insert(tokens.end(), plan.sent.begin(), plan.sent.end());
  return tokens;
}

std::string render_resend_plan(const std::vector<replay::ResendPlan>& plans, std::chrono::seconds extension,
                               const std::vector<MailedToken>& mailed) {
  std::string text;
  for (const auto& plan : plans)
    if (taken_by(plan) > 0 || plans.size() == 1) text += render_queue(plan);
  text += render_mailed(mailed, 80);
  const auto sent = sent_by(plans);
  text += matched_by(plans) == 0 ? std::string("No token matches.\n")
          : sent == 0            ? std::string("No token would be sent.\n")
                      : fmt::format("{} would be sent, {} with a Message-ID and a Date of its own.\n",
                                    counted(sent, "token"), sent == 1 ? "in a mail" : "each in a mail");
  if (sent > 0)
    text +=
        "Their text: templates as the sender read them at its start or its last SIGHUP; a message's own content is unchanged.\n";
  text += sent_before_text(before_of(plans), sent);
  for (const auto& plan : plans) {
    const auto& lately = plan.lately;
    if (lately.tokens > 0)
      text += fmt::format(
          "{} sent again within the last hour already, last {}; mailroom tail --since 1h says by whom.\n",
          counted(lately.tokens, "token") + (lately.tokens == 1 ? " was" : " were"), moment_text(lately.at));
  }
  const auto revived = revived_by(plans);
  if (revived > 0)
    text +=
        fmt::format("{} a new expiry, {} from now.\n",
                    revived == 1 ? "1 gets" : with_thousands(revived) + " get", format_duration(extension));
  const auto expired = counted_by(plans, replay::ResendChoice::expired);
  if (expired > 0 && sent > 0)
    text +=
        fmt::format("{} expired: --extend 15m sends {} too, with a new expiry.\n",
                    expired == 1 ? "1 has" : with_thousands(expired) + " have", expired == 1 ? "it" : "them");
  return text;
}

std::optional<Error> resend_refusal(const std::vector<replay::ResendPlan>& plans) {
  const auto waiting = counted_by(plans, replay::ResendChoice::waiting);
  std::int64_t taken = 0;
  for (const auto& plan : plans)
    taken += taken_by(plan);
  if (waiting > 0 && waiting + counted_by(plans, replay::ResendChoice::replaced) == taken)
    return std::nullopt;
  const auto untaken = counted_by(plans, replay::ResendChoice::untaken);
  if (taken == 0 && untaken == 0) {
    return Error(ExitCode::unusable, "no token matches",
                 "mailroom audit NAME shows the tokens of an account, their outcomes and their batches");
  }
  return Error(ExitCode::unusable,
               fmt::format("nothing can be sent again: {}", reasons_text(plans, taken == 0)),
               help_for(plans));
}

std::string resend_json(const std::vector<replay::ResendPlan>& plans, std::optional<std::int64_t> sent,
                        const std::vector<MailedToken>& mailed) {
  const auto plan_json = [](const replay::ResendPlan& plan) -> Json {
    Json tokens;
    for (const auto choice : all_choices) {
      std::string key(replay::resend_choice_text(choice));
      std::ranges::replace(key, ' ', '_');
      tokens[key] = plan.count(choice);
    }
    return {{"queue", plan.queue},
            {"tokens", std::move(tokens)},
            {"before",
             {{"accepted", plan.before.accepted},
              {"unknown", plan.before.maybe},
              {"emitted", plan.before.emitted}}},
            {"revived", plan.revived}};
  };
  Json object{{"queues", array_json<Json>(plans, plan_json)},
              {"recipients", mailed_json(mailed)},
              {"carried_out", sent.has_value()},
              {"sent", nullptr}};
  if (sent) object["sent"] = *sent;
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
