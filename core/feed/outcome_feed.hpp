// Hands outcomes over that wait until an application is told of them (rows of mailroom_outcomes), by a
// carrier, and removes those that it has taken.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "db/connection.hpp"
#include "delivery/dispatcher.hpp"

namespace mailroom::feed {

/// One that is to be handed over.
struct KeptOutcome {
  std::int64_t id = 0;
  std::int64_t token = 0;  ///< 0: its message had none yet, and no queue
  std::string queue;
  std::string state;
  int attempts = 0;  ///< how often it was refused
  std::string line;  ///< as JSON, without a newline; of an event empty for what is about no message
};

/// What an application is told, and its id, which is the same at each attempt.
struct ToldOutcome {
  std::string id;
  std::string body;
};

/// How outcomes are told.
struct OutcomeForm {
  /// The line is that of mailroom_outcome_event().
  bool is_event = false;
  /// None: nobody is told.
  std::function<std::optional<ToldOutcome>(const KeptOutcome&)> tell{};
  /// What is refused for good is dropped; otherwise it comes again, and an answer names no token.
  bool drops_refused = true;
};

/// A line for each final outcome, with what the database has about it.
OutcomeForm outcome_lines();

/// The session of the one process that hands outcomes over. Owns every transaction.
class KeptOutcomes {
 public:
  /// Keeps outcomes from now on.
  explicit KeptOutcomes(db::Connection& connection);

  /// Becomes the one that hands them over; false while another session is.
  bool take_over();
  /// The oldest that are due, with the line of an event or of a program.
  std::vector<KeptOutcome> due(int limit, bool as_events);
  /// The application has taken these, or will never take them.
  void remove(const std::vector<std::int64_t>& ids);
  /// It will be told later. `counts`: it has refused it, rather than that it could not be reached.
  void put_off(std::int64_t id, Milliseconds wait, bool counts);

  /// Ends the keeping, and removes what is kept. Returns how many these were.
  static std::int64_t end(db::Connection& connection);

 private:
  db::Connection& connection_;
};

/// One round after the other: what is due is handed over, and each answer recorded. An outcome is removed
/// only after it was acknowledged, so a crash repeats those of a round.
class OutcomeFeed {
 public:
  /// `in_flight`: lines of a round, which are handed over at the same time. The references must outlive this.
  OutcomeFeed(std::unique_ptr<delivery::Carrier> carrier, const delivery::Dispatcher::Options& options,
              OutcomeForm form, Log& log);

  /// Hands over what is due, and waits for the answers. Returns how many were taken, or are for nobody; 0
  /// also while the application takes nothing.
  int round(KeptOutcomes& kept);
  /// Gives up what has no answer; from another thread or a signal's turn.
  void cancel() { dispatcher_.cancel(); }
  /// The time until the application takes something; nullopt if it does now.
  std::optional<std::chrono::seconds> time_to_admission() const { return dispatcher_.time_to_admission(); }

 private:
  void record(KeptOutcomes& kept, const std::vector<KeptOutcome>& outcomes,
              const std::vector<delivery::Dispatched>& answers);

  std::vector<std::int64_t> submit(const std::vector<KeptOutcome>& outcomes);
  bool is_done(KeptOutcomes& kept, const KeptOutcome& outcome, const delivery::Answer& answer);

  int in_flight_;
  OutcomeForm form_;
  delivery::Dispatcher dispatcher_;
  Log& log_;
};

/// How long an outcome waits that was refused so often: 15 s, 30 s, 1, 2 and then 4 minutes, as a token does.
Milliseconds pause_of_outcome(int attempts);

}  // namespace mailroom::feed
