// The words for what became of a token. Every command, metric and document uses them, and no others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mailroom::fate {

/// What became of a token in a queue: one of these, in the order in which reports show them.
enum class Outcome : std::uint8_t {
  emitted,        ///< by one batch
  emitted_again,  ///< by several batches, or perhaps by an abandoned attempt too
  maybe_emitted,  ///< the records do not say whether its batch emitted it
  accepted,       ///< these are what deliveries record, and `deferred`
  rejected,
  unknown,
  expired,
  cancelled,
  delivered,     ///< accepted, and these came back since: it arrived,
  bounced,       ///< it did not,
  complained,    ///< its recipient called it spam
  deferred,      ///< it will be tried again
  skipped,       ///< it was not due when its claim or its consumer came to it, or will not be
  leased,        ///< in a batch that is not acknowledged yet
  in_gap,        ///< below the cursor, committed late: a claim will take it
  in_replay,     ///< below the cursor, and an operator wants it emitted again
  waiting,       ///< above the cursor
  dead,          ///< its batch was given up after too many attempts
  moved_past,    ///< an operator moved the cursor over it
  not_taken,     ///< the queue did not take its action, or began after it
  not_recorded,  ///< it may have been emitted, but the records of that time are incomplete
  missed,        ///< created after the cursor had passed its id
  unexplained,   ///< no record says why it was not emitted, or why it was emitted so often
};

constexpr std::size_t outcome_count = 23;

/// Those that a delivery records, in the order in which tables show them.
inline constexpr std::array delivery_outcomes{Outcome::accepted, Outcome::deferred, Outcome::rejected,
                                              Outcome::unknown,  Outcome::expired,  Outcome::cancelled};

/// Those that are of mails which were accepted before.
inline constexpr std::array reported_outcomes{Outcome::delivered, Outcome::bounced, Outcome::complained};

/// Why a token is `cancelled` whose account is suspended, or active already; deliveries record these words.
inline constexpr auto wrong_status_reason = "the account has the wrong status";

/// The word for programs: `emitted_again`.
const char* outcome_name(Outcome outcome);
/// The words for people: `emitted again`.
std::string outcome_text(Outcome outcome);
/// The outcome with this outcome_name(); nullopt for another word.
std::optional<Outcome> find_outcome(std::string_view name);

/// True if the token was lost, or something is wrong with its records.
constexpr bool is_fault(Outcome outcome) {
  return outcome == Outcome::missed || outcome == Outcome::unexplained;
}

/// True for a token that a queue will still find: above its cursor, or in a gap.
constexpr bool is_place(Outcome outcome) {
  return outcome == Outcome::waiting || outcome == Outcome::in_gap || outcome == Outcome::in_replay;
}

}  // namespace mailroom::fate
