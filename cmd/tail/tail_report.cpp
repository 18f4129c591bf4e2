// Fits lines into the terminal, with addresses cut first, and colours the states.

#include "cmd/tail/tail_report.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/wording.hpp"
#include "cmd/events/event_text.hpp"
#include "config/rate.hpp"
#include "queue/action.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::size_t time_width = 20;
constexpr std::size_t kind_width = 9;
constexpr std::size_t shortest_address = 6;

/// The columns left on a terminal; nullopt for no limit.
using Room = std::optional<std::size_t>;

const char* colour_of(const std::string& state) {
  if (state == "due" || state == "emitted" || state == "accepted" || state == "consumed" ||
      state == "delivered")
    return "\x1b[32m";
  if (state == "dead" || state == "rejected" || state == "unknown" || state == "suspended" ||
      state == "bounced" || state == "complained")
    return "\x1b[31m";
  return "\x1b[33m";
}

/// An address, cut if the `others` columns of the line leave too little.
std::string address_text(const accounts::AccountRecord& account, std::size_t others, Room room) {
  auto address = shown_text(account.email);
  if (room) address = fit(address, std::max(*room > others ? *room - others : 0, shortest_address));
  return address;
}

/// `recovery    17 `, or `message     ` without an account.
std::string action_and_account(const feed::StoredToken& token) {
  const auto action = fmt::format("{:<10}  ", shown_text(queue::short_action_name(token.action)));
  return token.account.id == 0 ? action : fmt::format("{}{} ", action, token.account.id);
}

std::string token_details(const feed::Event& event, const feed::StoredToken& token, Room room) {
  const auto before = action_and_account(token);
  std::string after;
  if (token.message) after = fmt::format("  message {}", *token.message);
  if (!token.reference.empty()) after += fmt::format(" ({})", shown_text(token.reference));
  // A new token is usually due, so only other states are shown.
  const bool is_odd = event.kind == feed::EventKind::created && event.state() != "due";
  const auto& state = token.consumed_as.empty() ? event.state() : token.consumed_as;
  if (is_odd || !token.consumed_as.empty()) after += "  " + shown_text(state);
  return before + address_text(token.account, display_width(before) + display_width(after), room) + after;
}

std::string delivery_details(const feed::DeliveryAttempt& delivery, const std::string& usual_queue,
                             Room room) {
  const auto of_queue =
      delivery.queue == usual_queue ? std::string() : "queue " + shown_text(delivery.queue) + ", ";
  const auto outcome = of_queue + delivery_text(delivery);
  if (delivery.token.action.empty()) return outcome;
  const auto before = action_and_account(delivery.token);
  return before +
         address_text(delivery.token.account, display_width(before) + 2 + display_width(outcome), room) +
         "  " + outcome;
}

/// The tokens of a batch: all, or those that match the filter.
std::string batch_tokens(const feed::Event& event, const queue::BatchRecord& batch) {
  const auto held = selection::count_ids(batch.tokens);
  if (event.matches) {
    return fmt::format("{} of {}: {}", event.matches->size(), counted(held, "token"), ids_text(event));
  }
  const auto count = event.kind == feed::EventKind::emitted ? batch.emitted : held;
  return counted(count, "token") + (held > 0 ? ": " + ids_text(event) : "");
}

std::string batch_details(const feed::Event& event, const queue::BatchRecord& batch,
                          const std::string& usual_queue) {
  const auto of_queue = batch.queue == usual_queue ? std::string() : ", queue " + shown_text(batch.queue);
  const auto skipped = skipped_text(batch.skipped, '-');
  if (event.kind == feed::EventKind::skipped) return skipped + of_queue;
  auto text = batch_tokens(event, batch);
  if (!skipped.empty()) text += ", skipped " + skipped;
  if (event.kind == feed::EventKind::dead) text += fmt::format(", {} attempts", batch.attempts);
  if (event.kind == feed::EventKind::taken_over) text += fmt::format(", attempt {}", batch.attempts);
  return text + of_queue + ", by " + collector_name(batch);
}

/// The figures of an operation. Only JSON shows details that are lists.
std::string figures_text(const feed::Operation& operation) {
  const auto details = parse_json(sound_utf8(operation.details));
  if (operation.kind == feed::EventKind::rewound) {
    const auto number = [&](const char* key) { return with_thousands(number_in(details, key)); };
    return fmt::format("cursor {} to {}, {} due", number("cursor_before"), number("cursor_after"),
                       number("replayed"));
  }
  if (operation.kind == feed::EventKind::replayed) {
    const auto until = details.find("until");
    return counted(number_in(details, "replayed"), "token") +
           (until != details.end() && until->is_string() ? " until " + shown_text(until->get<std::string>())
                                                         : "");
  }
  if (operation.kind == feed::EventKind::message_cancelled ||
      operation.kind == feed::EventKind::message_rescheduled)
    return fmt::format("message {}", number_in(details, "message"));
  if (operation.kind == feed::EventKind::address_suppressed ||
      operation.kind == feed::EventKind::address_freed) {
    const auto addresses = details.find("addresses");
    return addresses != details.end() && addresses->is_array() && !addresses->empty() &&
                   addresses->front().is_string()
               ? shown_text(addresses->front().get<std::string>()) +
                     (addresses->size() > 1 ? fmt::format(" and {} more", addresses->size() - 1) : "")
               : "";
  }
  if (operation.kind >= feed::EventKind::topic_created && operation.kind <= feed::EventKind::key_revoked) {
    std::string text;
    for (const auto* key : {"topic", "address", "key", "role"}) {
      const auto found = details.find(key);
      if (found != details.end() && found->is_string())
        text += (text.empty() ? "" : " ") + shown_text(found->get<std::string>());
    }
    return text;
  }
  if (operation.kind == feed::EventKind::limit_changed) {
    const auto role = details.find("role");
    const auto mails = number_in(details, "mails");
    const config::Rate rate{static_cast<int>(mails), Milliseconds(number_in(details, "milliseconds"))};
    return (role != details.end() && role->is_string() ? shown_text(role->get<std::string>()) : "") + " " +
           (mails > 0 ? config::format_rate(rate) : "none");
  }
  if (operation.kind == feed::EventKind::forgotten) return counted(number_in(details, "messages"), "message");
  if (operation.kind == feed::EventKind::revoked) return counted(number_in(details, "revoked"), "token");
  if (is_queue_change(operation.kind))
    return details.is_object() ? queue_change_text(operation, details) : "";
  if (is_of_consumer(operation.kind)) return consumer_text(operation.kind, details);
  return operation.kind == feed::EventKind::pruned ? pruned_text(details) : "";
}

std::string operation_details(const feed::Operation& operation, Room room) {
  auto text = figures_text(operation);
  text += (text.empty() ? "by " : ", by ") + shown_text(operation.actor);
  if (!operation.reason.empty()) text += ": " + shown_text(operation.reason);
  if (!operation.account || operation.account->email.empty()) return text;
  return address_text(*operation.account, display_width(text) + 2, room) + ", " + text;
}

std::string details_of(const feed::Event& event, const std::string& usual_queue, Room room) {
  if (const auto* token = event.token()) return token_details(event, *token, room);
  if (const auto* batch = event.batch()) return batch_details(event, *batch, usual_queue);
  if (const auto* delivery = event.delivery()) return delivery_details(*delivery, usual_queue, room);
  return operation_details(*event.operation(), room);
}

}  // namespace

std::string EventLines::render(const feed::Event& event) {
  const auto subject = shown_text(subject_text(event));
  if (!subject.empty() && subject.front() != 'q') subject_width_ = std::max(subject_width_, subject.size());
  const auto subject_width = std::max(subject_width_, display_width(subject));
  auto kind = fmt::format("{:<{}}", feed::kind_text(event.kind), kind_width);
  Room room;
  if (layout_.columns) {
    const auto taken = time_width + 2 + subject_width + 2 + kind.size() + 2;
    room = *layout_.columns > taken ? *layout_.columns - taken : 1;
  }
  if (layout_.colour) kind = colour_of(event.state()) + kind + "\x1b[0m";
  const auto details = details_of(event, layout_.queue, room);
  return moment_text(event.at) + "  " + subject + std::string(subject_width - display_width(subject), ' ') +
         "  " + kind + "  " + (room ? fit(details, *room) : details) + "\n";
}

namespace {

void add_account(nlohmann::ordered_json& object, const accounts::AccountRecord& account) {
  object["account"] = nullptr;
  if (account.id != 0) object["account"] = account.id;
  if (account.email.empty()) return;
  object["email"] = account.email;
  if (account.id != 0) object["login"] = account.login;
}

void add_message(nlohmann::ordered_json& object, const feed::StoredToken& token) {
  if (!token.message) return;
  object["message"] = *token.message;
  if (!token.reference.empty()) object["reference"] = token.reference;
  if (!token.consumed_as.empty()) object["consumed_as"] = token.consumed_as;
}

void add_token(nlohmann::ordered_json& object, const feed::StoredToken& token) {
  object["token"] = token.id;
  object["action"] = token.action;
  add_message(object, token);
  add_account(object, token.account);
  object["expires_at"] = moment_json<nlohmann::ordered_json>(token.expires_at);
}

void add_delivery(nlohmann::ordered_json& object, const feed::DeliveryAttempt& delivery) {
  object["token"] = delivery.token.id;
  object["queue"] = delivery.queue;
  if (!delivery.token.action.empty()) {
    object["action"] = delivery.token.action;
    add_message(object, delivery.token);
    add_account(object, delivery.token.account);
  }
  add_delivery_outcome(object, delivery);
}

void add_batch(nlohmann::ordered_json& object, const feed::Event& event, const queue::BatchRecord& batch) {
  object["batch"] = batch.id;
  object["queue"] = batch.queue;
  object["tokens"] = ids_json(batch.tokens);
  if (event.matches) object["matches"] = *event.matches;
  object["emitted"] = batch.emitted;
  object["skipped"] = skipped_json(batch.skipped);
  object["attempts"] = batch.attempts;
  object["key"] = nullptr;
  if (!batch.key.empty()) object["key"] = batch.key;
  object["actor"] = batch.claimed_by;
}

void add_operation(nlohmann::ordered_json& object, const feed::Operation& operation) {
  if (operation.account) add_account(object, *operation.account);
  if (!operation.queue.empty()) object["queue"] = operation.queue;
  object["actor"] = operation.actor;
  object["reason"] = nullptr;
  if (!operation.reason.empty()) object["reason"] = operation.reason;
  object["details"] = parse_ordered_json(sound_utf8(operation.details));
}

}  // namespace

std::string render_json(const feed::Event& event) {
  nlohmann::ordered_json object{
      {"time", time_json(event)}, {"event", feed::kind_text(event.kind)}, {"state", event.state()}};
  if (const auto* token = event.token()) {
    add_token(object, *token);
  } else if (const auto* batch = event.batch()) {
    add_batch(object, event, *batch);
  } else if (const auto* delivery = event.delivery()) {
    add_delivery(object, *delivery);
  } else {
    add_operation(object, *event.operation());
  }
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
