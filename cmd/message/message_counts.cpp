// counts: how many mails, by role, domain, action, profile and day, and what became of them.

#include <array>
#include <fmt/format.h>

#include "audit/timeline.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::array counted_words{
    std::pair{"role", messages::CountedBy::role}, std::pair{"action", messages::CountedBy::action},
    std::pair{"domain", messages::CountedBy::domain}, std::pair{"profile", messages::CountedBy::profile},
    std::pair{"day", messages::CountedBy::day}};

const char* counted_word(messages::CountedBy by) {
  for (const auto& [word, meaning] : counted_words) {
    if (meaning == by) return word;
  }
  return "";
}

std::string counts_table(const std::vector<messages::MailTally>& tallies,
                         const std::vector<messages::CountedBy>& by, std::size_t width) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns;
  for (const auto each : by)
    columns.push_back({counted_word(each), Align::left, true});
  for (const auto* title : {"mails", "accepted", "rejected", "deferred", "perhaps twice"})
    columns.push_back({title, Align::right, true});
  TextTable table(std::move(columns));
  for (const auto& tally : tallies) {
    std::vector<std::string> cells;
    for (const auto& text : tally.values)
      cells.push_back(text.empty() ? "-" : shown_text(text));
    const auto rejected = tally.rejected == 0 ? std::string("0")
                                              : fmt::format("{} ({:.0f} %)", with_thousands(tally.rejected),
                                                            100 * tally.rejected_part());
    for (const auto& text : {with_thousands(tally.mails), with_thousands(tally.accepted), rejected,
                             with_thousands(tally.deferred), with_thousands(tally.perhaps_twice)})
      cells.push_back(text);
    table.add(std::move(cells));
  }
  return table.render(width);
}

std::string counts_line(const messages::MailTally& tally, const std::vector<messages::CountedBy>& by) {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < by.size(); ++i)
    object[counted_word(by[i])] = text_or_null<nlohmann::ordered_json>(tally.values[i]);
  object["mails"] = tally.mails;
  object["accepted"] = tally.accepted;
  object["rejected"] = tally.rejected;
  object["deferred"] = tally.deferred;
  object["perhaps_twice"] = tally.perhaps_twice;
  return json_text(object) + "\n";
}

}  // namespace

messages::CountedBy parse_counted_by(const std::string& text) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : counted_words) {
    if (text == word) return meaning;
    words.emplace_back(word);
  }
  throw Error(ExitCode::usage, fmt::format("--by has an unknown word '{}'", text),
              "words: " + joined(words, ", "));
}

ExitCode message_counts(const MessageOptions& options, Context& context) {
  const auto& selectors = options.selectors;
  audit::parse_period(selectors.since, selectors.until, {});
  const auto by = options.counted_by.empty()
                      ? std::vector{messages::CountedBy::role, messages::CountedBy::domain}
                      : options.counted_by;
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  const auto now = connection->server_time();
  const auto period = audit::parse_period(selectors.since, selectors.until, now);
  const auto today = std::chrono::floor<std::chrono::days>(now);
  const auto since = selectors.since.empty() ? Moment(today) : period.since;
  // A token may be a little ahead of this clock.
  const auto until = selectors.until.empty() ? now + std::chrono::seconds(2) : period.until;
  const auto tallies = messages::count_mails(*connection, by, since, until);
  if (context.global().output == OutputFormat::json) {
    for (const auto& tally : tallies)
      context.print(counts_line(tally, by));
    return ExitCode::done;
  }
  context.print(tallies.empty() ? "no mail was asked for; --since begins earlier than today\n"
                                : counts_table(tallies, by, context.out().width()));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
