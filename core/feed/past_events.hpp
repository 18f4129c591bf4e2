// Past events in two steps: small keys for all of them, and rows only for those that are shown.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "feed/event.hpp"
#include "selection/selection.hpp"

namespace mailroom::feed {

/// The table that records an event of the tail.
enum class EventSource : std::uint8_t { operations, tokens, batches, deliveries };
EventSource source_of(EventKind kind);

/// Selects events. Empty lists and no action match all.
struct EventFilter {
  std::optional<std::string> action;   ///< as the database names it
  std::vector<std::int64_t> accounts;  ///< by id
  std::vector<std::string> states;     ///< of state_text()
  std::int64_t from_token = 0;         ///< the smallest token id
  /// Its codes, batches, consumers and keys: with them, or with outcomes that `states` names, only batches
  /// and deliveries match.
  selection::Selection selection{};

  bool is_of_outcomes() const {
    return !selection.outcomes.empty() || !selection.codes.empty() || !selection.batches.empty() ||
           !selection.consumers.empty() || !selection.keys.empty();
  }

  /// True if a batch matches by the tokens that it holds.
  bool asks_for_tokens() const { return action.has_value() || !accounts.empty(); }
  bool wants_state(std::string_view state) const;
  /// False if no event of this kind can match, so its row need not be read.
  bool may_want(EventKind kind) const;
  /// True if a complete event matches; a batch matches by its `matches`.
  bool wants(const Event& event) const;
};

/// An event before its row is read; millions of these may be in memory. `id` is that of a token, a batch or
/// an operation; that of a delivery is its token's.
struct EventKey {
  Moment order{};  ///< Event::order()
  EventKind kind{};
  std::int64_t id = 0;

  auto operator<=>(const EventKey&) const = default;
};

/// Which past events to read. `since` or `from_token` is the start; without either, `last` must be set.
struct HistoryRequest {
  std::optional<std::int64_t> last{};        ///< at most this many events, the newest
  std::optional<Moment> since{};             ///< in whole seconds
  std::optional<Moment> until{};             ///< exclusive; needs `since`
  std::optional<std::int64_t> from_token{};  ///< this token and later ones; other events since it was created
};

/// Returns the events that match `request` and `filter`, in order of time, 24 bytes each. Reads through a
/// cursor within the caller's transaction, so events that do not match use no memory.
std::vector<EventKey> read_history(pqxx::work& transaction, const HistoryRequest& request,
                                   const EventFilter& filter);

/// Returns the events of `keys`, in their order, with the present values of their rows. Omits events whose
/// rows have been deleted, and events that `filter` excludes. Runs one or two statements for each table.
std::vector<Event> look_up(db::Connection& connection, const std::vector<EventKey>& keys,
                           const EventFilter& filter);

}  // namespace mailroom::feed
