// Describes an event by its record, and an operation by its recorded details.

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/events/event_text.hpp"

namespace mailroom::cmd {
namespace {

std::string by_text(const std::string& actor, const std::string& as, const std::string& reason) {
  return fmt::format("by {}{}{}{}", shown_text(actor), shown_text(as), reason.empty() ? "" : ": ",
                     shown_text(reason));
}

std::string tokens_text(const std::vector<selection::IdRange>& ids) {
  return fmt::format("token{} {}", selection::count_ids(ids) == 1 ? "" : "s", selection::id_ranges_text(ids));
}

/// The tokens that were asked for, and how many of the batch were emitted if not all.
std::string held_text(const queue::BatchRecord& batch) {
  const auto asked = selection::count_ids(batch.tokens);
  auto text = asked == 0 ? counted(batch.size, "token") : tokens_text(batch.tokens);
  if (asked > 1 && asked == batch.size)
    text = fmt::format("{} ({})", counted(asked, "token"), selection::id_ranges_text(batch.tokens));
  if (batch.is_mixed())
    text += fmt::format(" ({} of {} emitted)", with_thousands(batch.emitted), with_thousands(batch.size));
  return text;
}

std::string value_text(const nlohmann::json& value) {
  if (value.is_string()) return shown_text(value.get<std::string>());
  if (value.is_number_integer()) return with_thousands(value.get<std::int64_t>());
  if (!value.is_array()) return shown_text(json_text(value));
  std::vector<std::string> parts;
  for (const auto& part : value)
    parts.push_back(value_text(part));
  return joined(parts, " ");
}

/// The details of an operation that the line does not show otherwise.
std::string other_details(const nlohmann::json& details) {
  static const std::vector<std::string> shown{"message", "cursor_before", "cursor_after", "cursor",  "ids",
                                              "cut",     "before",        "after",        "accounts"};
  std::string text;
  for (const auto& [key, value] : details.items()) {
    if (std::find(shown.begin(), shown.end(), key) != shown.end() || value.is_null()) continue;
    auto name = key;
    std::replace(name.begin(), name.end(), '_', ' ');
    text += fmt::format(", {} {}", shown_text(name), value_text(value));
  }
  return text;
}

/// The accounts that a replay was limited to.
std::string accounts_text(const nlohmann::json& details) {
  const auto accounts = details.find("accounts");
  if (accounts == details.end() || !accounts->is_array() || accounts->empty()) return "";
  std::vector<std::string> ids;
  for (const auto& id : *accounts)
    ids.push_back(shown_text(json_text(id)));
  return fmt::format(", account{} {}", ids.size() == 1 ? "" : "s", joined(ids, " and "));
}

std::string prune_text(const nlohmann::json& details) {
  auto text = pruned_text(details);
  if (const auto age = details.find("older_than"); age != details.end() && age->is_string())
    text += " older than " + value_text(*age);
  if (const auto left = number_in(details, "skipped"); left > 0)
    text += fmt::format(", {} left for the next run", with_thousands(left));
  const auto stopped = details.find("stopped");
  return stopped != details.end() && *stopped == true ? text + ", stopped before the end" : text;
}

std::string cut_text(const feed::Operation& operation) {
  if (operation.cut_batches.empty()) return "";
  return fmt::format(", out of open batch{} {}", operation.cut_batches.size() == 1 ? "" : "es",
                     joined(operation.cut_batches, " and "));
}

std::string target_text(const feed::Operation& operation, const nlohmann::json& details) {
  const auto value = [&](const char* key) {
    const auto found = details.find(key);
    return found == details.end() ? std::string("?") : value_text(*found);
  };
  if (operation.kind == feed::EventKind::rewound)
    return fmt::format("cursor of {} {} -> {}", shown_text(operation.queue), value("cursor_before"),
                       value("cursor_after"));
  if (operation.kind == feed::EventKind::replayed) {
    return operation.tokens.empty()
               ? "queue " + shown_text(operation.queue)
               : tokens_text(operation.tokens) + " in queue " + shown_text(operation.queue);
  }
  if (operation.kind == feed::EventKind::revoked) {
    return operation.tokens.empty() ? counted(number_in(details, "revoked"), "token")
                                    : tokens_text(operation.tokens);
  }
  if (operation.account) {
    return fmt::format("account {} {} -> {}", operation.account->id, value("before"), value("after"));
  }
  if (operation.kind == feed::EventKind::message_cancelled)
    return fmt::format("message {}", number_in(details, "message"));
  if (operation.kind == feed::EventKind::message_rescheduled)
    return fmt::format("message {} {} -> {}", number_in(details, "message"), value("before"), value("after"));
  return operation.queue.empty() ? "all queues" : "queue " + shown_text(operation.queue);
}

std::string queue_text(const feed::Operation& operation, const nlohmann::json& details) {
  const auto change = details.is_object() ? queue_change_text(operation, details) : "";
  if (operation.queue.empty()) return change;
  return "queue " + shown_text(operation.queue) + (change.empty() ? "" : ", " + change);
}

/// The rest of an event's line, by the row that records it.
struct DetailsText {
  feed::EventKind kind;

  std::string operator()(const accounts::AccountRecord& account) const {
    return fmt::format("account {} ({})", account.id, shown_text(account.login));
  }
  std::string operator()(const feed::StoredToken& token) const {
    if (!token.message) return fmt::format("token {}, {}", token.id, shown_text(token.action));
    const auto prefix = token.action == "message" ? "" : shown_text(token.action) + " ";
    return fmt::format("token {}, {}message {}", token.id, prefix, *token.message);
  }
  std::string operator()(const feed::TokenSkip& skip) const {
    return fmt::format("token {} in queue {}, {}", skip.token.id, shown_text(skip.queue),
                       skip_reason_text(skip.reason, skip.reason_certain));
  }
  std::string operator()(const feed::DeliveryAttempt& delivery) const {
    return fmt::format("token {} in queue {}, {}", delivery.token.id, shown_text(delivery.queue),
                       delivery_text(delivery)) +
           (delivery.key.empty() ? "" : fmt::format(" (key {})", shown_text(delivery.key)));
  }
  std::string operator()(const queue::BatchRecord& batch) const {
    const auto where = held_text(batch) + " " + where_and_actor(batch, collector_name(batch));
    if (kind == feed::EventKind::abandoned)
      return fmt::format("{}, leased {}", where, moment_text(batch.claimed_at));
    const auto skipped = skipped_text(batch.skipped);
    if (batch.size == 0 && batch.emitted == 0 && !skipped.empty())
      return fmt::format("{}, by {}", skipped, shown_text(batch.claimed_by));
    // If all were emitted, the skipped tokens were not in the batch.
    const bool shows_skipped = (batch.is_mixed() || batch.is_skipped()) && !skipped.empty();
    return where + (shows_skipped ? "; skipped: " + skipped : "");
  }
  std::string operator()(const feed::Operation& operation) const {
    const auto details = parse_json(sound_utf8(operation.details));
    const auto what = kind == feed::EventKind::pruned ? prune_text(details)
                      : is_queue_change(kind)         ? queue_text(operation, details)
                      : is_of_consumer(kind)          ? consumer_text(kind, details)
                                             : target_text(operation, details) + accounts_text(details) +
                                                   other_details(details) + cut_text(operation);
    return what + ", " + by_text(operation.actor, " as " + operation.db_user, operation.reason);
  }
  std::string operator()(const schema::SchemaChange& change) const {
    return fmt::format("{} {} {}, {} ms, {}", change.direction, change.version, shown_text(change.name),
                       with_thousands(change.duration.count()), by_text(change.actor, "", change.reason));
  }
};

}  // namespace

std::string_view event_name(const feed::Event& event) {
  const bool is_issued = event.kind == feed::EventKind::created && event.token() != nullptr;
  return is_issued ? "issued" : feed::kind_text(event.kind);
}

std::string event_details(const feed::Event& event) {
  return shown_text(std::visit(DetailsText{event.kind}, event.record));
}

}  // namespace mailroom::cmd
