#include "cmd/audit/audit_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/moment.hpp"
#include "base/text.hpp"
#include "feed/event.hpp"

namespace mailroom {
namespace {

std::string by_text(const std::string& actor, const std::string& as, const std::string& reason) {
  return fmt::format("by {}{}{}{}", shown_text(actor), shown_text(as), reason.empty() ? "" : ": ",
                     shown_text(reason));
}

/// The same text as tail's.
std::string done_text(const Operation& operation) {
  const auto kind = kind_of_operation(operation.kind);
  return kind ? std::string(kind_text(*kind)) : shown_text(operation.kind);
}

std::string ids_text(const std::vector<IdRange>& ids) {
  return fmt::format("token{} {}", count_ids(ids) == 1 ? "" : "s", id_ranges_text(ids));
}

/// The tokens that were asked for, and how many of the batch were emitted if not all.
std::string held_text(const BatchRecord& batch) {
  const auto asked = count_ids(batch.tokens);
  auto text = asked == 0 ? tokens_text(batch.size) : ids_text(batch.tokens);
  if (asked > 1 && asked == batch.size)
    text = fmt::format("{} ({})", tokens_text(asked), id_ranges_text(batch.tokens));
  if (batch.is_mixed())
    text += fmt::format(" ({} of {} emitted)", with_thousands(batch.emitted), with_thousands(batch.size));
  return text;
}

/// A timeline does not repeat the name of the program.
std::string short_where_and_actor(BatchRecord batch) {
  constexpr std::string_view program = "mailroom ";
  if (batch.claimed_by.compare(0, program.size(), program) == 0) batch.claimed_by.erase(0, program.size());
  return where_and_actor(batch);
}

std::string number_text(const nlohmann::json& number) {
  return number.is_number_integer() ? with_thousands(number.get<std::int64_t>())
                                    : shown_text(json_text(number));
}

std::string value_text(const nlohmann::json& value) {
  if (value.is_string()) return shown_text(value.get<std::string>());
  if (!value.is_array()) return number_text(value);
  std::vector<std::string> parts;
  for (const auto& part : value)
    parts.push_back(part.is_object() ? shown_text(json_text(part)) : value_text(part));
  return fmt::format("{}", fmt::join(parts, " "));
}

/// The details of an operation that the line does not show otherwise.
std::string other_details(const nlohmann::json& details) {
  static const std::vector<std::string> shown{"cursor_before", "cursor_after", "cursor", "ids",
                                              "cut",           "before",       "after",  "accounts"};
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
  return fmt::format(", account{} {}", ids.size() == 1 ? "" : "s", fmt::join(ids, " and "));
}

std::string pruned_text(const nlohmann::json& details) {
  const auto count = [&](const char* key) {
    const auto found = details.find(key);
    return found != details.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  };
  auto text = fmt::format("{} and {} batch record{}", tokens_text(count("tokens")),
                          with_thousands(count("batches")), count("batches") == 1 ? "" : "s");
  if (const auto age = details.find("older_than"); age != details.end() && age->is_string())
    text += " older than " + value_text(*age);
  if (count("skipped") > 0)
    text += fmt::format(", {} left for the next run", with_thousands(count("skipped")));
  const auto stopped = details.find("stopped");
  return stopped != details.end() && *stopped == true ? text + ", stopped before the end" : text;
}

std::string cut_text(const Operation& operation) {
  if (operation.cut_batches.empty()) return "";
  return fmt::format(", out of open batch{} {}", operation.cut_batches.size() == 1 ? "" : "es",
                     fmt::join(operation.cut_batches, " and "));
}

std::string subject_text(const Operation& operation, const nlohmann::json& details) {
  const auto value = [&](const char* key) {
    const auto found = details.find(key);
    return found == details.end() ? std::string("?") : value_text(*found);
  };
  if (operation.kind == "rewind")
    return fmt::format("cursor of {} {} -> {}", shown_text(operation.queue), value("cursor_before"),
                       value("cursor_after"));
  if (operation.kind == "replay") {
    return operation.tokens.empty() ? "queue " + shown_text(operation.queue)
                                    : ids_text(operation.tokens) + " in queue " + shown_text(operation.queue);
  }
  if (operation.account) {
    return fmt::format("account {} {} -> {}", *operation.account, value("before"), value("after"));
  }
  return operation.queue.empty() ? "all queues" : "queue " + shown_text(operation.queue);
}

}  // namespace

std::string what_text(const TimelineEvent& event) {
  struct What {
    std::string operator()(const AccountChange& change) const {
      static constexpr std::array names{"created", "activated", "suspended", "restored"};
      return names.at(static_cast<std::size_t>(change.what));
    }
    std::string operator()(const TokenChange& change) const {
      static constexpr std::array names{"issued", "consumed", "expired"};
      return names.at(static_cast<std::size_t>(change.what));
    }
    std::string operator()(const TokenSkip&) const { return "skipped"; }
    std::string operator()(const BatchRecord& batch) const {
      if (batch.is_open()) return "leased";
      if (!batch.emitted_at) return "dead";
      if (batch.is_skipped()) return "skipped";
      return batch.emitted > 0 ? "emitted" : "skipped";
    }
    std::string operator()(const Abandonment&) const { return "abandoned"; }
    std::string operator()(const Operation& operation) const { return done_text(operation); }
    std::string operator()(const SchemaChange&) const { return "migration"; }
  };
  return std::visit(What{}, event);
}

std::string details_text(const TimelineEvent& event) {
  struct Details {
    std::string operator()(const AccountChange& change) const {
      return fmt::format("account {} ({})", change.account, shown_text(change.login));
    }
    std::string operator()(const TokenChange& change) const {
      return fmt::format("token {}, {}", change.token, change.action);
    }
    std::string operator()(const TokenSkip& skip) const {
      return fmt::format("token {} in queue {}, {}", skip.token, shown_text(skip.queue),
                         skip_reason_text(skip.reason, skip.reason_certain));
    }
    std::string operator()(const BatchRecord& batch) const {
      const auto skipped = skipped_text(batch);
      if (batch.size == 0 && batch.emitted == 0 && !skipped.empty())
        return fmt::format("{}, by {}", skipped, shown_text(batch.claimed_by));
      // If all were emitted, the skipped tokens were not in the batch.
      const bool shows_skipped = (batch.is_mixed() || batch.is_skipped()) && !skipped.empty();
      return fmt::format("{} {}{}", held_text(batch), short_where_and_actor(batch),
                         shows_skipped ? "; skipped: " + skipped : "");
    }
    std::string operator()(const Abandonment& abandonment) const {
      const auto& claim = abandonment.claim;
      return fmt::format("{} {}, leased {}", held_text(claim), short_where_and_actor(claim),
                         moment_text(claim.claimed_at / microseconds_a_second));
    }
    std::string operator()(const Operation& operation) const {
      const auto details = nlohmann::json::parse(sound_utf8(operation.details));
      const auto what = operation.kind == "prune"
                            ? pruned_text(details)
                            : subject_text(operation, details) + accounts_text(details) +
                                  other_details(details) + cut_text(operation);
      return what + ", " + by_text(operation.actor, " as " + operation.db_user, operation.reason);
    }
    std::string operator()(const SchemaChange& change) const {
      return fmt::format("{} {} {}, {} ms, {}", change.direction, change.version, shown_text(change.name),
                         with_thousands(change.duration_ms), by_text(change.actor, "", change.reason));
    }
  };
  return std::visit(Details{}, event);
}

}  // namespace mailroom
