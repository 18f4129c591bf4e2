#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_range.hpp"
#include "base/moment.hpp"

namespace mailroom {

/// The kind of an event. Events with the same time are shown in this order.
enum class EventKind : std::uint8_t {
  suspended,
  restored,
  rewound,
  replayed,
  pruned,
  created,
  taken_over,
  dead,
  skipped,
  emitted,
  consumed,
};

/// The name of a kind: `taken-over`.
std::string_view kind_text(EventKind kind);

/// Maps mailroom_operations.kind to the kind of an event; nullopt for an unknown one.
std::optional<EventKind> kind_of_operation(std::string_view kind);

/// The inverse of kind_text(). Throws std::logic_error for any other text.
EventKind find_kind(std::string_view text);

/// Which table records an event.
enum class EventSource : std::uint8_t { tokens, consumption, batches, operations };
EventSource source_of(EventKind kind);

/// An event before its row is read; millions of these may be in memory. `id` is that of a token, a batch or
/// an operation.
struct EventKey {
  std::int64_t order_us = 0;  ///< microseconds since 1970, or see creation_order()
  std::int64_t id = 0;
  EventKind kind{};

  friend bool operator<(const EventKey& a, const EventKey& b) {
    if (a.order_us != b.order_us) return a.order_us < b.order_us;
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.id < b.id;
  }
  friend bool operator==(const EventKey& a, const EventKey& b) {
    return a.order_us == b.order_us && a.kind == b.kind && a.id == b.id;
  }
};

// Tokens keep whole seconds, rounded by a cast of extract(epoch …): the real time is up to half a second
// earlier or later. A token's creation sorts before all other events of that second, and its consumption
// after them.
inline std::int64_t creation_order(std::int64_t created_at) {
  return to_microseconds(created_at) - 500'000;
}
inline std::int64_t consumption_order(std::int64_t consumed_at) {
  return to_microseconds(consumed_at) + 999'999;
}

/// An event with everything that can be shown. Fields that do not apply are empty or null. Never holds a
/// secret or a code.
struct Event {
  EventKind kind{};
  std::int64_t time_us = 0;
  bool whole_seconds = false;  ///< true for events of tokens
  std::string state;           ///< one of state_text()

  std::optional<std::int64_t> token;
  std::string action;  ///< activation or password_recovery
  std::int64_t expires_at = 0;

  std::optional<std::int64_t> account;
  std::string email;
  std::string login;

  std::optional<std::int64_t> batch;
  std::string queue;
  std::vector<IdRange> tokens;                       ///< all tokens of a batch
  std::optional<std::vector<std::int64_t>> matches;  ///< those that the filter asks for
  int attempts = 0;
  int emitted = 0;
  int expired = 0;
  int consumed = 0;
  int wrong_status = 0;
  int invalid = 0;

  std::string actor;    ///< the collector of a batch, or the actor of an operation
  std::string reason;   ///< of an operation
  std::string details;  ///< of an operation, a JSON object
};

/// Every state that an event can have, in the order in which a token meets them.
const std::vector<std::string>& state_text();

}  // namespace mailroom
