// One rule for each outcome, in every queue that knows the token; each step is named once.

#include "audit/next_steps.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/clock.hpp"
#include "base/wording.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::audit {
namespace {

std::string in_parentheses(const std::string& text) {
  return text.empty() ? text : " (" + text + ")";
}

bool may_be_sent(fate::Outcome outcome) {
  return outcome == fate::Outcome::emitted || outcome == fate::Outcome::emitted_again ||
         outcome == fate::Outcome::maybe_emitted || outcome == fate::Outcome::accepted ||
         outcome == fate::Outcome::unknown || outcome == fate::Outcome::delivered ||
         outcome == fate::Outcome::bounced || outcome == fate::Outcome::complained ||
         outcome == fate::Outcome::not_recorded;
}

class StepFinder {
 public:
  StepFinder(const TokenFacts& token, const Holds& holds, bool names_queue, std::int64_t recipients)
      : token_(token), holds_(holds), names_queue_(names_queue), recipients_(recipients) {}

  void visit(const TokenReport& report) {
    for (const auto& delivery : report.deliveries) {
      const auto& queue = delivery.delivery.queue;
      const bool waits = delivery.outcome == fate::Outcome::deferred || fate::is_place(delivery.outcome) ||
                         (delivery.next && fate::is_place(*delivery.next));
      visit(delivery.outcome, queue, waits, delivery.delivery.last().sink);
    }
    const auto& status = report.status;
    if (!report.has_status()) return;
    const bool is_skip =
        status.outcome == fate::Outcome::skipped || status.outcome == fate::Outcome::cancelled;
    const bool is_unreached = is_skip && status.next;
    const bool waits =
        fate::is_place(status.outcome) || (status.next && fate::is_place(*status.next) && !is_unreached);
    visit(status.outcome, status.queue.empty() && status.batch ? status.batch->queue : status.queue, waits,
          "");
  }

  std::vector<NextStep> steps() { return std::move(steps_); }

 private:
  void visit(fate::Outcome outcome, const std::string& queue, bool waits, const std::string& sink) {
    if (token_.account.status == "suspended")
      return add("its account is suspended; to lift that",
                 fmt::format("mailroom suspend --undo id:{}", token_.account.id));
    if (waits) return add_holds(queue, sink);
    switch (outcome) {
      case fate::Outcome::leased:
        return add("to see who has it", "mailroom status --queue " + shell_word(queue));
      case fate::Outcome::missed:
        return add("to mail all that were missed", status::fix_sequence());
      case fate::Outcome::unexplained:
        return add("to list all such tokens", "mailroom reconcile --list");
      case fate::Outcome::not_taken:
        return add("to see which queue takes which action", "mailroom queue list");
      default:
        // A message keeps its addresses; that of an account may be corrected.
        if (outcome == fate::Outcome::rejected && token_.message && recipients_ <= 1) {
          return add("to mail it again, to the same address; for another one, ask for a new message",
                     resend_command(queue));
        }
        if (recipients_ > 1)
          return add(fmt::format("to mail all {} recipients again (token:N mails one of them)", recipients_),
                     resend_command(queue));
        return add(may_be_sent(outcome) ? "to mail it again" : "to mail it", resend_command(queue));
    }
  }

  std::string resend_command(const std::string& queue) const {
    const auto name = recipients_ > 1 ? fmt::format("message:{}", token_.message.value_or(0))
                                      : fmt::format("token:{}", token_.id);
    return fmt::format("mailroom resend {}{}{}", name, token_.state == "expired" ? " --extend 15m" : "",
                       names_queue_ ? " --queue " + shell_word(queue) : "");
  }

  void add_holds(const std::string& queue, const std::string& sink) {
    for (const auto& [name, pause] : holds_.paused) {
      if (name != queue) continue;
      add(fmt::format("queue {} is paused since {} by {}{}; to resume it", name, moment_text(pause.since),
                      pause.actor, in_parentheses(pause.reason)),
          "mailroom queue resume " + shell_word(queue));
    }
    for (const auto& down : holds_.sinks) {
      if (sink.empty() || sink == down.name)
        add(fmt::format("{} is unavailable since {}{}; to see why", down.name, format_duration(down.lasts),
                        in_parentheses(down.reason)),
            "mailroom doctor");
    }
  }

  void add(std::string text, std::string command) {
    NextStep step{.text = std::move(text), .command = std::move(command)};
    if (std::find(steps_.begin(), steps_.end(), step) == steps_.end()) steps_.push_back(std::move(step));
  }

  const TokenFacts& token_;
  const Holds& holds_;
  bool names_queue_;
  std::int64_t recipients_;
  std::vector<NextStep> steps_{};
};

std::set<std::string> queues_of(const TokenReport& report) {
  std::set<std::string> queues;
  for (const auto& of_queue : report.by_queue)
    queues.insert(of_queue.queue);
  for (const auto& delivery : report.deliveries)
    queues.insert(delivery.delivery.queue);
  if (!report.status.queue.empty()) queues.insert(report.status.queue);
  return queues;
}

}  // namespace

std::vector<NextStep> next_steps(const TokenReport& report, const Holds& holds, std::int64_t recipients) {
  const auto& token = report.token;
  // Nothing revives a revoked token.
  if (!token.exists || token.consumed_at || revocation_of(token) != nullptr) return {};
  StepFinder finder(token, holds, report.by_queue.size() > 1, recipients);
  for (const auto& of_queue : report.by_queue)
    finder.visit(of_queue);
  if (report.by_queue.empty()) finder.visit(report);
  return finder.steps();
}

std::vector<NextStep> read_next_steps(pqxx::transaction_base& transaction,
                                      const std::vector<TokenReport>& reports, std::int64_t recipients) {
  std::set<std::string> queues;
  bool is_over = true;
  for (const auto& report : reports) {
    if (!report.token.exists || report.token.consumed_at) continue;
    is_over = false;
    queues.merge(queues_of(report));
  }
  if (is_over) return {};
  Holds holds;
  for (const auto& queue : queue::read_records(transaction, {queues.begin(), queues.end()})) {
    if (queue.pause) holds.paused.push_back({.queue = queue.name, .pause = *queue.pause});
  }
  holds.sinks = status::read_unavailable_sinks(transaction);
  std::vector<NextStep> steps;
  for (const auto& report : reports) {
    for (auto& step : next_steps(report, holds, recipients))
      if (std::ranges::find(steps, step) == steps.end()) steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace mailroom::audit
