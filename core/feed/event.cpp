// The names of events in the database and in output, and their order within a second.

#include "feed/event.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "fate/fate.hpp"

namespace mailroom::feed {
namespace {

/// The kinds, then mailroom_operations.kind of the first kinds.
constexpr std::array<std::string_view, 74> names{"suspended",
                                                 "restored",
                                                 "rewound",
                                                 "replayed",
                                                 "pruned",
                                                 "queue-created",
                                                 "queue-changed",
                                                 "paused",
                                                 "resumed",
                                                 "dropped",
                                                 "budget-changed",
                                                 "action-created",
                                                 "action-changed",
                                                 "action-retired",
                                                 "reloaded",
                                                 "went-back",
                                                 "revoked",
                                                 "message-cancelled",
                                                 "message-rescheduled",
                                                 "adopted",
                                                 "forgotten",
                                                 "address-suppressed",
                                                 "address-freed",
                                                 "limit-changed",
                                                 "topic-created",
                                                 "topic-changed",
                                                 "topic-retired",
                                                 "unsubscribed",
                                                 "resubscribed",
                                                 "key-created",
                                                 "key-revoked",
                                                 "created",
                                                 "taken-over",
                                                 "dead",
                                                 "skipped",
                                                 "emitted",
                                                 "delivery",
                                                 "consumed",
                                                 "leased",
                                                 "abandoned",
                                                 "activated",
                                                 "expired",
                                                 "migration",
                                                 "suspend",
                                                 "restore",
                                                 "rewind",
                                                 "replay",
                                                 "prune",
                                                 "create queue",
                                                 "set queue",
                                                 "pause queue",
                                                 "resume queue",
                                                 "drop queue",
                                                 "set budget",
                                                 "create action",
                                                 "set action",
                                                 "retire action",
                                                 "reload",
                                                 "went back",
                                                 "revoke",
                                                 "cancel message",
                                                 "reschedule message",
                                                 "adopt",
                                                 "forget",
                                                 "suppress",
                                                 "unsuppress",
                                                 "set limit",
                                                 "create topic",
                                                 "set topic",
                                                 "retire topic",
                                                 "unsubscribe",
                                                 "resubscribe",
                                                 "create key",
                                                 "revoke key"};
constexpr std::size_t kinds = 43;

std::size_t place_of(std::string_view text) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), text) - names.begin());
}

}  // namespace

std::string_view kind_text(EventKind kind) {
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view operation_text(std::string_view text) {
  const auto place = place_of(text) + kinds;
  return place < names.size() ? names.at(place) : std::string_view();
}

EventKind find_kind(std::string_view text) {
  const auto place = place_of(text);
  if (place == names.size()) throw std::logic_error("no such event");
  return static_cast<EventKind>(place % kinds);
}

const accounts::AccountRecord* Event::account() const {
  const auto of = [](const StoredToken& token) { return token.account.id == 0 ? nullptr : &token.account; };
  if (token() != nullptr) return of(*token());
  if (const auto* skip = std::get_if<TokenSkip>(&record)) return of(skip->token);
  if (delivery() != nullptr) return of(delivery()->token);
  if (operation() != nullptr && operation()->account) return &*operation()->account;
  return std::get_if<accounts::AccountRecord>(&record);
}

std::string Event::queue() const {
  if (batch() != nullptr) return batch()->queue;
  if (const auto* skip = std::get_if<TokenSkip>(&record)) return skip->queue;
  if (delivery() != nullptr) return delivery()->queue;
  return operation() != nullptr ? operation()->queue : "";
}

std::string Event::actor() const {
  if (batch() != nullptr) return batch()->claimed_by;
  return operation() != nullptr ? operation()->actor : "";
}

std::string Event::state() const {
  if (delivery() != nullptr) return delivery()->state;
  if (kind != EventKind::created || token() == nullptr) return std::string(kind_text(kind));
  auto state = token()->state;
  std::replace(state.begin(), state.end(), ' ', '-');
  return state;
}

// Times of tokens and accounts have whole seconds: the real time of a creation is up to a second later.
// Creations sort before all other events of their second, and other changes after them. An account is created
// before its first token, and activated after that is consumed.
std::chrono::microseconds order_shift(EventKind kind) {
  return std::chrono::microseconds(kind == EventKind::created ? 0 : 999'998);
}

Moment Event::order() const {
  if (!has_whole_seconds()) return at;
  const int further = kind == EventKind::created ? -1 : 1;
  return at + order_shift(kind) + std::chrono::microseconds(token() != nullptr ? 0 : further);
}

const std::vector<std::string>& state_text() {
  static const std::vector<std::string> words{"created",
                                              "due",
                                              "expired",
                                              "consumed",
                                              "wrong-status",
                                              "emitted",
                                              "delivery",
                                              "accepted",
                                              "deferred",
                                              "rejected",
                                              "unknown",
                                              "cancelled",
                                              "delivered",
                                              "bounced",
                                              "complained",
                                              "taken-over",
                                              "dead",
                                              "skipped",
                                              "suspended",
                                              "restored",
                                              "rewound",
                                              "replayed",
                                              "pruned",
                                              "queue-created",
                                              "queue-changed",
                                              "paused",
                                              "resumed",
                                              "dropped",
                                              "budget-changed",
                                              "action-created",
                                              "action-changed",
                                              "action-retired",
                                              "reloaded",
                                              "went-back",
                                              "revoked",
                                              "message-cancelled",
                                              "message-rescheduled",
                                              "adopted",
                                              "forgotten",
                                              "address-suppressed",
                                              "address-freed",
                                              "limit-changed",
                                              "topic-created",
                                              "topic-changed",
                                              "topic-retired",
                                              "unsubscribed",
                                              "resubscribed",
                                              "key-created",
                                              "key-revoked"};
  return words;
}

bool can_be_of(const StoredToken& token, Moment at) {
  const auto second_of = [](Moment moment) {
    return std::chrono::floor<std::chrono::seconds>(moment).time_since_epoch().count();
  };
  return fate::can_be_of(second_of(token.created_at), second_of(at));
}

}  // namespace mailroom::feed
