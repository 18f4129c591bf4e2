#include "config/key_table.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "base/text.hpp"

namespace mailroom {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Choice<CollectFormat>, 2> collect_formats{
    {{"csv", CollectFormat::csv}, {"jsonl", CollectFormat::jsonl}}};

constexpr std::array<Choice<LogLevel>, 4> log_levels{{{"debug", LogLevel::debug},
                                                      {"info", LogLevel::info},
                                                      {"warn", LogLevel::warn},
                                                      {"error", LogLevel::error}}};

constexpr std::array<Choice<LogFormat>, 3> log_formats{
    {{"text", LogFormat::text}, {"logfmt", LogFormat::logfmt}, {"json", LogFormat::json}}};

constexpr std::array<Choice<NotifyWhen>, 2> notify_choices{
    {{"when_listening", NotifyWhen::when_listening}, {"always", NotifyWhen::always}}};

template <const auto& choices>
constexpr auto choice_names = [] {
  std::array<std::string_view, choices.size()> names{};
  for (std::size_t i = 0; i < choices.size(); ++i)
    names[i] = choices[i].first;
  return names;
}();

constexpr std::array<KeyEntry, 17> entries{{
    {"database.url", "MAILROOM_DATABASE_URL", "",
     "libpq URI or key=value pairs, several hosts allowed; without it libpq's PG* variables apply", true,
     false, [](const RawValue& value, Settings& settings) { settings.database_url = value.text; }},

    {"signing.key_file", "MAILROOM_SECRET_KEY_FILE", "",
     "file of the signing key: 64 hexadecimal digits (make it with: openssl rand -hex 32)", false, false,
     [](const RawValue& value, Settings& settings) { settings.signing_key_file = parse_path(value); }},

    {"signing.key", "MAILROOM_SECRET_KEY", "",
     "the signing key itself, instead of key_file; in a file only if the file has mode 0600", true, false,
     [](const RawValue& value, Settings& settings) { settings.signing_key = parse_key(value); }},

    {"signing.previous_key_files", "MAILROOM_PREVIOUS_SECRET_KEYS", "",
     "files of earlier keys, whose tokens verify still accepts", false, true,
     [](const RawValue& value, Settings& settings) { settings.previous_keys = parse_keys_or_paths(value); }},

    {"signing.allow_readable_key", "", "false", "accept a key file that everyone can read", false, false,
     [](const RawValue& value, Settings& settings) { settings.allow_readable_key = parse_switch(value); }},

    {"collect.channel", "MAILROOM_CHANNEL_NAME", "token_insert", "NOTIFY channel that wakes the collector",
     false, false, [](const RawValue& value, Settings& settings) { settings.channel = parse_name(value); }},

    {"collect.queue", "MAILROOM_QUEUE_NAME", "mailroom", "queue whose cursor the collector moves", false,
     false, [](const RawValue& value, Settings& settings) { settings.queue = parse_name(value); }},

    {"collect.batch_limit", "MAILROOM_BATCH_LIMIT", "10",
     "maximum number of tokens in a line, from 1 to 10000", false, false,
     [](const RawValue& value, Settings& settings) { settings.batch_limit = parse_count(value, 1, 10'000); }},

    {"collect.lines_per_claim", "MAILROOM_LINES_PER_CLAIM", "1",
     "maximum number of lines in one claim, from 1 to 10000; a crash repeats at most that many", false, false,
     [](const RawValue& value, Settings& settings) {
       settings.lines_per_claim = parse_count(value, 1, 10'000);
     }},

    {"collect.batch_timeout", "MAILROOM_BATCH_TIMEOUT", "5s",
     "maximum time that a token waits for its batch to fill, up to 1d", false, false,
     [](const RawValue& value, Settings& settings) {
       settings.batch_timeout = parse_interval(value, 0ms, 24h);
     }},

    {"collect.healthcheck_interval", "MAILROOM_HEALTHCHECK_INTERVAL", "4m30s",
     "how long the connection may be silent before it is checked, from 1s to 1d", false, false,
     [](const RawValue& value, Settings& settings) {
       settings.healthcheck_interval = parse_interval(value, 1s, 24h);
     }},

    {"collect.format", "MAILROOM_COLLECT_FORMAT", "csv", "format of a line: csv or jsonl", false, false,
     [](const RawValue& value, Settings& settings) {
       settings.format = parse_choice(value, collect_formats);
     },
     choice_names<collect_formats>},

    {"collect.poll_interval", "MAILROOM_POLL_INTERVAL", "1s",
     "maximum time between two polls of the queue without a notification, from 10ms to 1h", false, false,
     [](const RawValue& value, Settings& settings) {
       settings.poll_interval = parse_interval(value, 10ms, 1h);
     }},

    {"collect.notify", "MAILROOM_NOTIFY", "when_listening",
     "when inserts notify: when_listening (not while a collector is polling) or always", false, false,
     [](const RawValue& value, Settings& settings) { settings.notify = parse_choice(value, notify_choices); },
     choice_names<notify_choices>},

    {"audit.retention", "MAILROOM_AUDIT_RETENTION", "30d",
     "how long prune keeps expired and consumed tokens and batch records, from 1h to 36500d", false, false,
     [](const RawValue& value, Settings& settings) {
       settings.audit_retention = parse_interval(value, 1h, 24h * 36'500);
     }},

    {"log.level", "MAILROOM_LOG_LEVEL", "info", "minimum level that is logged: debug, info, warn or error",
     false, false,
     [](const RawValue& value, Settings& settings) { settings.log_level = parse_choice(value, log_levels); },
     choice_names<log_levels>},

    {"log.format", "MAILROOM_LOG_FORMAT", "text", "format of a log line: text, logfmt or json", false, false,
     [](const RawValue& value, Settings& settings) {
       settings.log_format = parse_choice(value, log_formats);
     },
     choice_names<log_formats>},
}};

std::string_view section_of(std::string_view key) {
  return key.substr(0, key.find('.'));
}

std::string_view name_of(std::string_view key) {
  return key.substr(key.find('.') + 1);
}

/// The keys that an unknown key may stand for, indexed by the text to type. Within a known section only names
/// are compared, so that a shared section does not make them similar. A key without a section may lack only
/// that.
std::map<std::string, std::string> suggestions_for(const std::string& key) {
  std::map<std::string, std::string> suggestions;
  const bool has_section = key.find('.') != std::string::npos;
  const bool knows_section = has_section && is_section(section_of(key));
  for (const auto& entry : entries) {
    const std::string whole(entry.key);
    if (knows_section && section_of(whole) != section_of(key)) continue;
    suggestions.emplace(has_section && !knows_section ? whole : std::string(name_of(whole)), whole);
    if (!has_section) suggestions.emplace(section_of(whole), section_of(whole));
  }
  return suggestions;
}

}  // namespace

std::span<const KeyEntry> key_table() {
  return entries;
}

const KeyEntry* find_key(std::string_view key) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

bool is_section(std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return section_of(entry.key) == name; });
}

std::string hint_for_unknown(const std::string& key) {
  const auto suggestions = suggestions_for(key);
  std::vector<std::string> candidates;
  for (const auto& [typed, meant] : suggestions)
    candidates.push_back(typed);
  const auto nearest = nearest_word(is_section(section_of(key)) ? name_of(key) : key, candidates);
  return nearest.empty() ? "mailroom.yaml.example lists every key"
                         : fmt::format("did you mean {}?", suggestions.at(nearest));
}

}  // namespace mailroom
