#include "cmd/events/event_text.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

std::string joined(std::string_view words, char space) {
  std::string text(words);
  std::replace(text.begin(), text.end(), ' ', space);
  return text;
}

}  // namespace

std::string time_text(const Event& event) {
  return event.has_whole_seconds() ? moment_text(event.at) : precise_moment_text(event.at);
}

nlohmann::ordered_json time_json(const Event& event) {
  if (!date_text(event.at)) return nullptr;
  return time_text(event);
}

std::string subject_text(const Event& event) {
  if (const auto* token = event.token()) return fmt::format("token {}", token->id);
  if (const auto* batch = event.batch()) return fmt::format("batch {}", batch->id);
  if (const auto* account = event.account()) return fmt::format("account {}", account->id);
  return event.queue().empty() ? "database" : "queue " + event.queue();
}

std::string ids_text(const Event& event) {
  if (event.batch() == nullptr) return "";
  std::string text;
  for (const auto& range : event.matches ? to_id_ranges(*event.matches) : event.batch()->tokens)
    text += (text.empty() ? "" : ",") + id_range_text(range);
  return text;
}

nlohmann::ordered_json ids_json(const std::vector<IdRange>& ranges) {
  auto ids = nlohmann::ordered_json::array();
  for (const auto& range : ranges) {
    for (auto id = range.first; id < range.end; ++id)
      ids.push_back(id);
  }
  return ids;
}

std::string skipped_text(const SkipCounts& counts, char space) {
  std::string text;
  for (const auto& [reason, count] : counts.by_reason()) {
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(count), joined(reason, space));
  }
  return text;
}

nlohmann::ordered_json skipped_json(const SkipCounts& counts) {
  nlohmann::ordered_json object;
  for (const auto& [reason, count] : counts.by_reason())
    object[joined(reason, '_')] = count;
  return object;
}

std::string collector_name(const BatchRecord& batch) {
  constexpr std::string_view program = "mailroom ";
  const std::string_view name = batch.claimed_by;
  return shown_text(name.substr(name.starts_with(program) ? program.size() : 0));
}

std::int64_t number_in(const nlohmann::json& details, const char* key) {
  const auto found = details.find(key);
  return found != details.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::string pruned_text(const nlohmann::json& details) {
  return fmt::format("{} and {}", counted(number_in(details, "tokens"), "token"),
                     counted(number_in(details, "batches"), "batch record"));
}

Event masked(Event event) {
  const auto mask = [](AccountRecord& account) {
    if (!account.email.empty()) account.email = masked_address(account.email);
    if (!account.login.empty()) account.login = masked_address(account.login);
  };
  if (auto* token = std::get_if<StoredToken>(&event.record)) mask(token->account);
  auto* operation = std::get_if<Operation>(&event.record);
  if (operation != nullptr && operation->account) mask(*operation->account);
  return event;
}

}  // namespace mailroom
