// How many mails there are today, as message counts says, and what is wrong now, as status does.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/desk/desk_pages.hpp"
#include "cmd/status/status_watch.hpp"
#include "messages/mail_counts.hpp"

namespace mailroom::cmd {
namespace {

using desk::html_text;

constexpr std::size_t most_rows = 50;

/// The sums of what has the same value at `place`, most first.
std::vector<messages::MailTally> summed_by(const std::vector<messages::MailTally>& tallies,
                                           std::size_t place) {
  std::map<std::string, messages::MailTally> sums;
  for (const auto& tally : tallies) {
    auto& sum = sums[tally.values[place]];
    sum.values = {tally.values[place]};
    sum.mails += tally.mails;
    sum.accepted += tally.accepted;
    sum.rejected += tally.rejected;
    sum.deferred += tally.deferred;
    sum.perhaps_twice += tally.perhaps_twice;
  }
  std::vector<messages::MailTally> sorted;
  for (auto& [value, sum] : sums)
    sorted.push_back(std::move(sum));
  std::ranges::stable_sort(sorted, std::ranges::greater(), &messages::MailTally::mails);
  return sorted;
}

std::string tallies_html(const char* word, std::vector<messages::MailTally> tallies) {
  desk::DeskTable table{.caption = fmt::format("By {}", word),
                        .columns = {word, "mails", "accepted", "rejected", "deferred", "perhaps twice"},
                        .first_number = 1};
  const auto omitted = tallies.size() > most_rows ? tallies.size() - most_rows : 0;
  tallies.resize(tallies.size() - omitted);
  for (const auto& tally : tallies) {
    const auto& value = tally.values.front();
    table.rows.push_back({value.empty() ? "-" : value, with_thousands(tally.mails),
                          with_thousands(tally.accepted), with_thousands(tally.rejected),
                          with_thousands(tally.deferred), with_thousands(tally.perhaps_twice)});
  }
  return desk::table_html(table) + (omitted > 0 ? fmt::format("<p>and {} more</p>", omitted) : std::string());
}

std::string finding_html(const health::QueueFinding& finding) {
  auto html = fmt::format("<h2>{}</h2><p{}>{}</p>", health::severity_name(finding.severity),
                          finding.severity == health::Severity::failure ? " class=\"bad\"" : "",
                          html_text(finding.text));
  if (!finding.fix.empty()) html += "<p>fix:</p>" + command_html(finding.fix);
  if (!finding.hint.empty()) html += fmt::format("<p>hint: {}</p>", html_text(finding.hint));
  return html;
}

}  // namespace

desk::DeskPage desk_today_page(desk::DeskCall& call) {
  using messages::CountedBy;
  auto& connection = *call.session.connection;
  const auto now = connection.server_time();
  const Moment today = std::chrono::floor<std::chrono::days>(now);
  // A token may be a little ahead of this clock.
  const auto tallies =
      messages::count_mails(connection, {CountedBy::domain, CountedBy::role, CountedBy::profile}, today,
                            now + std::chrono::seconds(2));
  desk::DeskPage page{.title = "Today"};
  page.body = fmt::format("<p>Mails since {}.</p>", html_text(moment_text(today)));
  if (tallies.empty()) {
    page.body += desk::note_html("No mail was asked for today.");
    return page;
  }
  constexpr std::array words{"domain", "role", "profile"};
  for (std::size_t i = 0; i < words.size(); ++i)
    page.body += tallies_html(words[i], summed_by(tallies, i));
  return page;
}

desk::DeskPage desk_status_page(desk::DeskCall& call, const config::Settings& settings) {
  StatusRequest request{.settings = settings, .limits = {}};
  request.limits.collector_silence = health::silence_limit(settings.collect.poll_interval);
  request.limits.send_connections = settings.send.path.connections;
  const auto overview = read_overview(*call.session.connection, request);
  const auto findings = findings_of(overview);
  desk::DeskPage page{.title = "What is wrong"};
  page.body = findings.empty() ? desk::note_html("Nothing is wrong.")
                               : fmt::format("<p>{}</p>", html_text(verdict_text(findings)));
  for (const auto& finding : findings)
    page.body += finding_html(finding);
  page.body +=
      "<p>mailroom doctor also checks the configuration, keys, templates and relays, on the host that sends.</p>";
  return page;
}

}  // namespace mailroom::cmd
