// What must hold after any order of the steps of a scenario, by the database and by what each session was
// told.

#include "fault/order_oracle.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace mailroom::test {
namespace {

struct FinalToken {
  std::string name{};  ///< login, or reference of its message
  std::string address{};
  std::string action{};
  std::string reference{};  ///< of its message; empty for none
  bool is_ended = false;    ///< its message was cancelled or replaced
  bool is_expired = false;
};

struct Emission {
  const LeaseRecord* lease;
  std::int64_t token;
};

std::map<std::int64_t, FinalToken> final_tokens(db::Connection& connection) {
  std::map<std::int64_t, FinalToken> tokens;
  for (const auto& row : connection.run(R"(
SELECT t.id, coalesce(m.reference, a.login) AS name, coalesce(m.recipients[1], a.email) AS address,
  t.action::text AS action, coalesce(m.reference, '') AS reference,
  coalesce(m.cancelled_at, m.replaced_at) IS NOT NULL AS is_ended,
  t.expires_at <= extract(epoch FROM now()) AS is_expired
FROM tokens t LEFT JOIN accounts a ON a.id = t.account LEFT JOIN mailroom_messages m ON m.id = t.message)"))
    tokens[row.number("id")] = {row.text("name"),      row.text("address"),  row.text("action"),
                                row.text("reference"), row.flag("is_ended"), row.flag("is_expired")};
  return tokens;
}

class Judge {
 public:
  Judge(const Scenario& scenario, const History& history, db::Connection& connection)
      : scenario_(scenario), history_(history), connection_(connection), tokens_(final_tokens(connection)) {
    for (const auto& lease : history_.leases) {
      if (lease.committed == never) continue;
      for (const auto& token : lease.tokens) {
        names_.try_emplace(token.id, token.name);
        if (token.state == "due" && !lease.withheld.contains(token.id))
          emissions_.push_back({&lease, token.id});
      }
    }
  }

  std::vector<std::string> all() {
    for (const auto& queue : scenario_.queues)
      judge_queue(queue);
    judge_inserts();
    for (const auto& event : history_.events)
      judge_event(event);
    judge_references();
    judge_reports();
    judge_records();
    return std::move(problems_);
  }

 private:
  void expect(bool met, const std::string& otherwise) {
    if (!met) problems_.push_back(otherwise);
  }

  static bool is_after(Tick one, Tick other) { return other != never && one > other; }

  bool is_of(const FinalToken& token, const std::string& queue) {
    const auto rows = connection_.run(
        "SELECT actions IS NULL OR $2 = ANY (actions::text[]) AS is_its FROM mailroom_queues WHERE name = $1",
        queue, token.action);
    return rows.empty() || rows.value<bool>();
  }

  /// How often the token was emitted for sure.
  std::ptrdiff_t emitted(std::int64_t id, const std::string& queue) const {
    return std::ranges::count_if(emissions_, [&](const auto& each) {
      return each.token == id && each.lease->queue == queue && !each.lease->is_gone &&
             !each.lease->deferred.contains(id);
    });
  }

  /// How often it may be emitted beyond the first time: for each session that ended with it, and each rewind.
  std::ptrdiff_t allowed(std::int64_t id, const std::string& queue) const {
    const auto rewinds = std::ranges::count_if(history_.events, [&](const auto& event) {
      return event.step->means == Means::rewinds && event.step->subject == queue && event.committed != never;
    });
    const auto taken_over = std::ranges::count_if(emissions_, [&](const auto& each) {
      return each.token == id && each.lease->queue == queue && !each.lease->is_gone && was_lost(*each.lease);
    });
    return rewinds + taken_over;
  }

  /// True if the batch was leased again while the session of this lease had ended and no other had it.
  bool was_lost(const LeaseRecord& lease) const {
    return std::ranges::any_of(history_.leases, [&](const auto& other) {
      return other.batch == lease.batch && other.attempt == lease.attempt + 1 &&
             is_after(other.committed, lease.lost) && (lease.kept == never || other.committed < lease.kept);
    });
  }

  std::string name_of(std::int64_t id) const {
    const auto found = tokens_.find(id);
    if (found != tokens_.end()) return found->second.name;
    const auto leased = names_.find(id);
    return leased != names_.end() ? leased->second : std::to_string(id);
  }

  void judge_queue(const std::string& queue) {
    for (const auto& [id, token] : tokens_) {
      if (!is_of(token, queue)) continue;
      const auto times = emitted(id, queue);
      const bool is_withheld = std::ranges::any_of(
          history_.leases, [id = id](const auto& lease) { return lease.withheld.contains(id); });
      if (!token.is_ended && !token.is_expired && !is_withheld)
        expect(times > 0, fmt::format("{} is committed, and {} has not emitted it", token.name, queue));
      expect(times <= 1 + allowed(id, queue), fmt::format("{} emits {} {} times", queue, token.name, times));
    }
    for (const auto& each : emissions_) {
      if (each.lease->queue != queue) continue;
      const auto found = tokens_.find(each.token);
      expect(
          found != tokens_.end() && is_of(found->second, queue),
          fmt::format("{} emits {}, which is not one of its committed tokens", queue, name_of(each.token)));
    }
  }

  void judge_inserts() {
    for (const auto& event : history_.events) {
      if (event.step->means != Means::inserts || event.committed == never) continue;
      const bool exists = std::ranges::any_of(
          tokens_, [&](const auto& each) { return each.second.name.starts_with(event.step->subject); });
      expect(exists, event.step->subject + " was committed, and is gone");
    }
  }

  void judge_event(const StepEvent& event) {
    const auto& step = *event.step;
    if (event.committed == never) return;
    for (const auto& [lease, id] : emissions_) {
      const auto found = tokens_.find(id);
      const bool is_subject = found != tokens_.end() && found->second.reference == step.subject;
      if (step.means == Means::cancels && event.answer.value() == "cancelled")
        expect(!is_subject, step.subject + " was said to be cancelled, and is emitted");
      if (step.means == Means::replaces && lease->began > event.committed)
        expect(!is_subject, step.subject + " was replaced, and is leased after that");
      if (step.means == Means::unsubscribes && lease->session < scenario_.scripts.size() &&
          found != tokens_.end() && found->second.address == step.subject)
        expect(asked_at(*lease) < event.committed,
               step.subject + " has left, and an attempt at a mail begins after that");
    }
    if (step.means == Means::pauses) judge_pause(event);
  }

  /// When the session of a lease began to ask which of its tokens must not leave.
  Tick asked_at(const LeaseRecord& lease) const {
    for (const auto& event : history_.events) {
      if (event.session == lease.session && event.step->act == Act::ask_withheld &&
          event.began > lease.committed)
        return event.began;
    }
    return lease.committed;
  }

  void judge_pause(const StepEvent& pause) {
    Tick end = history_.now;
    for (const auto& event : history_.events) {
      if (event.step->means == Means::resumes && event.began > pause.began) end = std::min(end, event.began);
    }
    for (const auto& lease : history_.leases)
      expect(lease.began < pause.committed || lease.committed > end ||
                 lease.session >= scenario_.scripts.size() || lease.queue != pause.step->subject,
             fmt::format("batch {} is leased while {} is paused", lease.batch, lease.queue));
  }

  void judge_reports() {
    const auto judged = std::ranges::count_if(history_.events, [](const auto& event) {
      return event.step->means == Means::judges && event.committed != never && event.answer.value() == "t";
    });
    expect(judged <= 1, "a report is judged twice");
  }

  void judge_references() {
    for (const auto& row : connection_.run(R"(
SELECT reference FROM mailroom_messages m WHERE coalesce(cancelled_at, replaced_at) IS NULL
  AND NOT EXISTS (SELECT FROM tokens t WHERE t.message = m.id)
  AND NOT EXISTS (SELECT FROM mailroom_schedule s WHERE s.message = m.id))"))
      expect(false, row.text("reference") + " is stored, and nobody will send it");
    for (
        const auto& row : connection_.run(
            "SELECT reference, count(*) AS messages FROM mailroom_messages WHERE idempotency_key IS NOT NULL AND "
            "replaced_at IS NULL OR reference LIKE 'keyed%' AND replaced_at IS NULL GROUP BY reference HAVING count(*) > 1"))
      expect(false,
             fmt::format("{} has one key and {} messages", row.text("reference"), row.number("messages")));
  }

  void judge_records() {
    const auto row = connection_.run(R"(
SELECT (SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL) AS open,
  (SELECT count(*) FROM mailroom_schedule WHERE send_after <= now()) AS scheduled,
  (SELECT coalesce(sum(skipped_expired), 0) FROM mailroom_batches) AS expired,
  (SELECT count(*) FROM mailroom_batches WHERE earlier_attempts @? '$[*].begun[*]') AS begun)")[0];
    expect(row.number("open") == 0, "a batch is open");
    expect(row.number("scheduled") == 0, "a message whose time has come is in the schedule");
    expect(row.number("begun") == 0, "a lease is on record as begun, and no session has begun it");
    const auto expired =
        std::ranges::count_if(tokens_, [](const auto& each) { return each.second.is_expired; });
    expect(row.number("expired") == expired,
           fmt::format("{} tokens had expired, and {} are counted", expired, row.number("expired")));
    if (!scenario_.burst) return;
    std::size_t taken = 0;
    for (const auto& lease : history_.leases)
      taken +=
          lease.committed == never || lease.session >= scenario_.scripts.size() ? 0 : lease.tokens.size();
    expect(taken <= static_cast<std::size_t>(*scenario_.burst),
           fmt::format("{} tokens are leased, and the budget allows {}", taken, *scenario_.burst));
  }

  const Scenario& scenario_;
  const History& history_;
  db::Connection& connection_;
  std::map<std::int64_t, FinalToken> tokens_;
  std::map<std::int64_t, std::string> names_{};
  std::vector<Emission> emissions_{};
  std::vector<std::string> problems_{};
};

}  // namespace

std::vector<std::string> judge_order(const Scenario& scenario, const History& history,
                                     db::Connection& connection) {
  return Judge(scenario, history, connection).all();
}

std::vector<std::string> order_errors(const History& history) {
  std::vector<std::string> errors;
  for (const auto& event : history.events) {
    if (!event.answer.error.empty()) errors.push_back(event.step->name + ": " + event.answer.error);
  }
  return errors;
}

}  // namespace mailroom::test
