// The rules about relays and other sinks, what they say of deliveries, and what came back of those.

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "base/wording.hpp"
#include "health/queue_health.hpp"
#include "status/queue_sessions.hpp"

namespace mailroom::health {
namespace {

/// A sink that is unavailable for longer is not only restarted.
constexpr std::chrono::minutes restart{1};

/// True for a reason that begins with a code of 5xx. Such a refusal does not heal by itself, unlike that of a
/// relay that is down or busy.
bool is_permanent_refusal(const std::string& reason) {
  const auto is_digit = [&](std::size_t at) { return reason[at] >= '0' && reason[at] <= '9'; };
  return reason.size() > 3 && reason[0] == '5' && is_digit(1) && is_digit(2) && reason[3] == ' ';
}

/// A relay that refuses everything has usually rejected a few mails before that was clear.
std::string refusal_hint(const status::DeliveryStatus& deliveries) {
  const auto rejected = std::ranges::find(deliveries.last_hour, fate::Outcome::rejected,
                                          [](const auto& entry) { return entry.first; });
  if (rejected == deliveries.last_hour.end()) return {};
  return "; what was rejected before: mailroom resend --outcome rejected --since 2h --dry-run shows who would "
         "be mailed, once it takes mails again";
}

/// A failure if mails wait, or this queue had some within the last hour, and no other relay or sink accepts
/// them; otherwise a warning.
QueueFinding unavailable(const status::UnavailableSink& sink, const status::DeliveryStatus& deliveries,
                         bool has_tokens) {
  const bool is_needed = has_tokens || !deliveries.last_hour.empty();
  const bool others_accept = deliveries.last_accepted.value_or(sink.lasts) < sink.lasts;
  // Others may be of other profiles.
  const bool is_of_profile = sink.name.ends_with(')') && deliveries.deferred.tokens > 0;
  const bool holds_up = is_needed && (!others_accept || is_of_profile) && sink.lasts >= restart;
  const bool is_permanent = is_permanent_refusal(sink.reason);
  const bool is_replaced = others_accept && !is_of_profile;
  return {holds_up || (is_permanent && !is_replaced) ? Severity::failure : Severity::warning,
          "sink_unavailable",
          fmt::format("{} has been unavailable for {}, after {}. {}: {}", sink.name,
                      status::age_text(sink.lasts), counted(sink.failures, "failure"),
                      is_replaced ? "Another one takes the mails" : "Tokens wait in the queue", sink.reason),
          {},
          "mailroom doctor tries it, and says more" + (is_permanent ? refusal_hint(deliveries) : "")};
}

/// Others are taken. A domain's mails wait for it, which is for somebody to see when it takes long; a
/// sender's end as rejected.
QueueFinding refused_part(const status::RefusedPart& part) {
  constexpr std::chrono::minutes long_wait{5};
  const bool is_domain = part.rate > 0;
  const auto rate = is_domain ? fmt::format(" It takes about {:g} of them in a second.", part.rate) : "";
  return {
      is_domain && part.lasts >= long_wait ? Severity::failure : Severity::warning,
      is_domain ? "domain_limited" : "sender_refused",
      fmt::format("{} has {} mails {} for {}, and takes others.{} It says: {}", part.sink,
                  is_domain ? "limited" : "refused", part.of, status::age_text(part.lasts), rate, part.why),
      {},
      is_domain
          ? "ask its operator, or that of the domain, for a higher rate; mailroom tail --state deferred --since 1h "
            "shows the mails that wait"
          : "let the relay or provider verify this sender; then mailroom resend --outcome rejected --since 2h --dry-run "
            "shows who would be mailed"};
}

/// A few wrong addresses come one after the other; many, for some time, are no chance: a wrong sender, a
/// suspended account, or a server in trouble. That it puts off several for some time is no chance either.
std::optional<QueueFinding> only_refusals(const status::RefusedSince& refused) {
  constexpr std::int64_t some = 3;
  constexpr std::int64_t many = 10;
  if (refused.tokens < some) return std::nullopt;
  const bool is_no_chance = refused.tokens >= many || refused.deferred >= some;
  return QueueFinding{
      is_no_chance && refused.lasts >= restart ? Severity::failure : Severity::warning,
      "only_refusals",
      fmt::format("the receiver has refused or put off {} within {}, and accepted none since. Its "
                  "last answer: {}",
                  counted(refused.tokens, "token"), status::age_text(refused.lasts), refused.last),
      {},
      "mailroom tail --state rejected,deferred --since 1h shows what was said of each"};
}

/// They are lost to their recipients until somebody corrects the template and has them sent again.
std::optional<QueueFinding> unmade(const status::UnmadeMails& mails) {
  if (mails.tokens == 0) return std::nullopt;
  // Afterwards it is news, as what expired is.
  constexpr std::chrono::minutes recent{10};
  // A single one may be a mistake of whoever asked for it; several are one of the template.
  constexpr std::int64_t several = 3;
  return QueueFinding{
      mails.last < recent && mails.tokens >= several ? Severity::failure : Severity::warning,
      "mails_not_made",
      fmt::format("{} within the last hour could not be made, the last {} ago, and are rejected: {}",
                  counted(mails.tokens, "mail"), status::age_text(mails.last), mails.why),
      {},
      "correct the template or the data, and have the senders read it (kill -HUP, systemctl reload); then mailroom resend "
      "--outcome rejected --since 2h --dry-run shows who would be mailed"};
}

/// They wait for a person.
std::optional<QueueFinding> withheld(const status::DeferredTokens& deferred) {
  if (deferred.withheld == 0) return std::nullopt;
  return QueueFinding{
      Severity::failure,
      "not_configured",
      fmt::format("{} {} for the configuration of the senders: {}", counted(deferred.withheld, "token"),
                  deferred.withheld == 1 ? "waits" : "wait", deferred.withheld_for),
      {},
      "mailroom.yaml.example describes the key; systemctl reload 'mailroom-send@*', or kill -HUP PID without systemd, makes "
      "the senders take it, and the tokens go out within a minute"};
}

/// A single account is suspended for a reason; many in a row are a mistake of a program.
std::optional<QueueFinding> only_unfit(const status::UnfitSince& unfit) {
  constexpr std::int64_t many = 10;
  if (unfit.tokens < many) return std::nullopt;
  return QueueFinding{
      unfit.lasts >= restart ? Severity::failure : Severity::warning,
      "accounts_unfit",
      fmt::format(
          "{} were skipped within {}, since their accounts are suspended or active already, and none was sent "
          "since",
          counted(unfit.tokens, "token"), status::age_text(unfit.lasts)),
      {},
      "mailroom audit --outcome cancelled,skipped --since 2h names them. If all were suspended by mistake: mailroom audit "
      "--outcome cancelled,skipped --since 2h -o csv | tail -n +2 | cut -d, -f4 | mailroom suspend --undo --replay -"};
}

// Amazon SES reviews a sender at 5 % bounces or 0.1 % complaints.
constexpr std::int64_t fewest_bounces = 10;
constexpr std::int64_t fewest_complaints = 3;

/// An import of addresses that do not exist is refused in the dialogue, and nothing of it comes back.
std::optional<QueueFinding> many_rejections(const status::DeliveryStatus& deliveries) {
  const auto& rejected = deliveries.rejected;
  const auto accepted = deliveries.count_last_hour(fate::Outcome::accepted);
  if (accepted == 0 || rejected.mails < fewest_bounces || rejected.mails * 20 < accepted + rejected.mails)
    return std::nullopt;
  return QueueFinding{
      Severity::warning,
      "many_rejections",
      fmt::format(
          "the receiver rejected {} within the last hour, {} %, while it accepted {}: {}. Its last answer: {}",
          counted(rejected.mails, "mail"), rejected.mails * 100 / (accepted + rejected.mails),
          with_thousands(accepted), rejected.actions, rejected.last),
      {},
      "mailroom audit --outcome rejected --since 1d -o csv names the addresses, and mailroom message counts --by action,day "
      "what part was rejected; mailroom suppression add stops an address"};
}

std::optional<QueueFinding> doubled(std::int64_t mails) {
  if (mails == 0) return std::nullopt;
  return QueueFinding{
      Severity::warning,
      "perhaps_twice",
      fmt::format("{} of the last hour may have been taken twice: a receiver or a sender ended before the "
                  "answer of an attempt",
                  counted(mails, "mail")),
      {},
      "mailroom reconcile --list perhaps_twice --since 1d names who may have got them"};
}

}  // namespace

std::vector<QueueFinding> judge_sinks(const status::DeliveryStatus& deliveries, bool has_tokens) {
  std::vector<QueueFinding> found;
  for (const auto& sink : deliveries.sinks)
    found.push_back(unavailable(sink, deliveries, has_tokens));
  for (const auto& part : deliveries.refused_parts)
    found.push_back(refused_part(part));
  if (auto waiting = withheld(deliveries.deferred)) found.push_back(std::move(*waiting));
  if (auto failed = unmade(deliveries.unmade)) found.push_back(std::move(*failed));
  if (auto refusals = only_refusals(deliveries.refused)) found.push_back(std::move(*refusals));
  if (auto unfit = only_unfit(deliveries.unfit)) found.push_back(std::move(*unfit));
  if (auto many = many_rejections(deliveries)) found.push_back(std::move(*many));
  if (auto twice = doubled(deliveries.perhaps_twice)) found.push_back(std::move(*twice));
  return found;
}

std::vector<QueueFinding> judge_came_back(const status::CameBack& reports, std::int64_t accepted) {
  std::vector<QueueFinding> found;
  const auto warn = [&](std::string code, const std::string& what, const char* limit, const char* words) {
    found.push_back(
        {Severity::warning,
         std::move(code),
         fmt::format(
             "{} came back within the last hour, in which {} accepted: providers stop senders above {}", what,
             counted(accepted, "mail") + (accepted == 1 ? " was" : " were"), limit),
         {},
         words});
  };
  if (reports.hard >= fewest_bounces && reports.hard * 20 >= accepted)
    warn(
        "many_bounces", counted(reports.hard, "hard bounce"), "5 %",
        "mailroom audit --outcome bounced --since 1d names the addresses. They are suppressed; look where they come from, as "
        "a form without a check or an old list");
  if (reports.complaints >= fewest_complaints && reports.complaints * 1000 >= accepted)
    warn("many_complaints", counted(reports.complaints, "complaint"), "0.1 %",
         "mailroom audit --outcome complained --since 1d names who called which mail spam");
  return found;
}

}  // namespace mailroom::health
