#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_range.hpp"
#include "base/moment.hpp"

namespace mailroom {

/// What an event says happened. In the order in which events of one instant are told.
enum class EventWord : std::uint8_t {
  suspended,
  restored,
  rewound,
  replayed,
  pruned,
  created,
  taken_over,
  set_aside,
  passed_over,
  emitted,
  consumed,
};

/// `taken-over`.
std::string_view word_text(EventWord word);

/// The word that mailroom_operations.kind stands for; nothing for a kind that this program does not know.
std::optional<EventWord> word_of_operation(std::string_view kind);

/// Which table tells of an event.
enum class EventSource : std::uint8_t { tokens, consumption, batches, operations };
EventSource source_of(EventWord word);

/// An event before its row is read: what there may be millions of at a time. `id` is that of a token, a batch
/// or an operation.
struct EventKey {
  std::int64_t order_us = 0;  ///< when it happened, in microseconds since 1970, or see creation_order()
  std::int64_t id = 0;
  EventWord word{};

  friend bool operator<(const EventKey& a, const EventKey& b) {
    if (a.order_us != b.order_us) return a.order_us < b.order_us;
    if (a.word != b.word) return a.word < b.word;
    return a.id < b.id;
  }
  friend bool operator==(const EventKey& a, const EventKey& b) {
    return a.order_us == b.order_us && a.word == b.word && a.id == b.id;
  }
};

// Tokens keep seconds, and a cast of extract(epoch …) rounds them: the moment was half a second earlier or
// later. Within one snapshot a token is told of before, and its consumption after, what else may have been
// then, since a batch comes in between.
inline std::int64_t creation_order(std::int64_t created_at) {
  return to_microseconds(created_at) - 500'000;
}
inline std::int64_t consumption_order(std::int64_t consumed_at) {
  return to_microseconds(consumed_at) + 999'999;
}

/// One event, with all that may be told of it. Strings are empty and ids null where they have no meaning.
/// Never holds a secret or a code.
struct Event {
  EventWord word{};
  std::int64_t time_us = 0;
  bool whole_seconds = false;  ///< tokens keep their times in seconds
  std::string state;           ///< one word of state_words()

  std::optional<std::int64_t> token;
  std::string action;  ///< activation or password_recovery
  std::int64_t expires_at = 0;

  std::optional<std::int64_t> account;
  std::string email;
  std::string login;

  std::optional<std::int64_t> batch;
  std::string queue;
  std::vector<IdRange> tokens;                       ///< of a batch, all of them
  std::optional<std::vector<std::int64_t>> matches;  ///< of these the ones that the filter asks for
  int attempts = 0;
  int emitted = 0;
  int expired = 0;
  int consumed = 0;
  int wrong_status = 0;
  int invalid = 0;

  std::string by;       ///< who: the collector of a batch, the actor of an operation
  std::string reason;   ///< of an operation
  std::string details;  ///< of an operation, a JSON object
};

/// Every state that an event can have, in the order in which a token meets them.
const std::vector<std::string>& state_words();

}  // namespace mailroom
