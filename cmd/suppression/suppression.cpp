// mailroom suppression: shows and changes which addresses get no more mails.

#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "suppression/address_list.hpp"
#include "suppression/suppressions.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::int64_t longest_list = 1000;
constexpr std::size_t at_once = 1000;
constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

struct SuppressionOptions {
  std::vector<std::string> addresses;
  std::string topic;
  std::string reason;
};

std::vector<std::string> forms_of(const std::vector<std::string>& typed) {
  std::vector<std::string> forms;
  for (const auto& each : typed)
    forms.push_back(suppression::suppressed_form(each));
  return forms;
}

std::string list_text(const std::vector<suppression::Suppression>& list, std::size_t limit) {
  if (list.empty()) return "no address is suppressed\n";
  std::string text;
  for (std::size_t i = 0; i < std::min(list.size(), limit); ++i) {
    const auto& each = list[i];
    text += fmt::format("{}  {}{}  {}, by {}: {}{}\n", shown_text(each.address), each.kind,
                        each.topic.empty() ? "" : fmt::format(" ({} alone)", each.topic),
                        date_text(each.added_at).value_or(""), shown_text(each.added_by),
                        shown_text(each.reason), each.token ? fmt::format(" (token {})", *each.token) : "");
  }
  if (list.size() > limit) text += fmt::format("and more: mailroom suppression export writes all\n");
  return text;
}

nlohmann::ordered_json json_of(const suppression::Suppression& each) {
  return {{"address", each.address},
          {"topic", text_or_null<nlohmann::ordered_json>(each.topic)},
          {"kind", each.kind},
          {"reason", each.reason},
          {"added_at", moment_json<nlohmann::ordered_json>(each.added_at)},
          {"added_by", each.added_by},
          {"token", optional_json<nlohmann::ordered_json>(each.token)}};
}

ExitCode list(const SuppressionOptions& options, db::Connection& connection, Context& context) {
  const auto found =
      suppression::list_suppressions(connection, forms_of(options.addresses), longest_list + 1,
                                     options.topic.empty() ? std::nullopt : std::optional(options.topic));
  if (context.global().output == OutputFormat::json) {
    for (const auto& each : found)
      context.print(json_text(json_of(each)) + "\n");
  } else {
    context.print(list_text(found, longest_list));
  }
  return ExitCode::done;
}

/// All as lines that import reads.
ExitCode export_all(const SuppressionOptions& /*options*/, db::Connection& connection, Context& context) {
  for (const auto& each : suppression::list_suppressions(connection, {}, no_limit))
    context.print(json_text(json_of(each)) + "\n");
  return ExitCode::done;
}

ExitCode change(const SuppressionOptions& options, bool adds, db::Connection& connection, Context& context) {
  const auto forms = forms_of(options.addresses);
  const auto author = queue::operator_author(connection, options.reason);
  const auto& topic = options.topic;
  const auto count = adds ? suppression::add_suppressions(connection, forms, topic, author)
                          : suppression::remove_suppressions(connection, forms, topic, author);
  const auto of_topic = topic.empty() ? "" : fmt::format(" of {}", topic);
  const auto* const rest =
      adds && topic.empty() ? "; security mail, such as a password recovery, still goes to it" : "";
  if (count > 0) {
    context.print(fmt::format("done: {} {} messages{}{}{}\n", joined(options.addresses, ", "),
                              adds ? "gets no more" : "gets", of_topic, adds ? "" : " again", rest));
    return ExitCode::done;
  }
  context.print(fmt::format("nothing to do: {}\n", adds ? "suppressed before" : "not suppressed"));
  // It may have left a topic, which is another matter.
  if (adds || !topic.empty()) return ExitCode::done;
  for (const auto& each : suppression::list_suppressions(connection, forms, longest_list))
    context.print(fmt::format("{} gets no messages of {}; --topic {} removes that\n",
                              shown_text(each.address), each.topic, each.topic));
  return ExitCode::done;
}

ExitCode add(const SuppressionOptions& options, db::Connection& connection, Context& context) {
  return change(options, true, connection, context);
}

ExitCode remove(const SuppressionOptions& options, db::Connection& connection, Context& context) {
  return change(options, false, connection, context);
}

ExitCode import_lines(const SuppressionOptions& options, db::Connection& connection, Context& context) {
  const auto author = queue::operator_author(connection, options.reason);
  std::int64_t added = 0;
  std::int64_t lines = 0;
  std::size_t waiting = 0;
  std::map<std::string, std::vector<std::string>> forms;  // by topic
  const auto flush = [&] {
    for (const auto& [topic, of_topic] : std::exchange(forms, {}))
      added += suppression::add_suppressions(connection, of_topic, topic, author);
    waiting = 0;
  };
  suppression::AddressList list;
  for (std::string line; std::getline(std::cin, line);) {
    ++lines;
    try {
      for (const auto& [address, topic] : list.read(line)) {
        forms[topic.empty() ? options.topic : topic].push_back(suppression::suppressed_form(address));
        ++waiting;
      }
    } catch (const Error& error) {
      throw Error(ExitCode::usage, fmt::format("line {}: {}", lines, error.what()),
                  "lines before it may have been taken: import again when it is corrected");
    }
    if (waiting >= at_once) flush();
  }
  if (!list.rest().empty()) throw Error(ExitCode::usage, "the JSON does not end", "import the whole of it");
  flush();
  context.print(fmt::format("done: {} of {} added\n", with_thousands(added), counted(lines, "line")));
  return ExitCode::done;
}

void add_topic_option(CommandSyntax& syntax, SuppressionOptions& options) {
  syntax.text("--topic NAME", options.topic, "of the mails of this topic alone");
}

void add_reason(CommandSyntax& syntax, SuppressionOptions& options) {
  add_topic_option(syntax, options);
  syntax.text("--reason TEXT", options.reason, "why, for the record");
}

void add_change(CommandSyntax& syntax, SuppressionOptions& options) {
  syntax.texts("ADDRESS", options.addresses, "the addresses").repeated().required();
  add_reason(syntax, options);
}

constexpr Subcommand<SuppressionOptions, db::Connection&, Context&> suppression_actions[] = {
    {"list", "list suppressed addresses, the newest first", list,
     [](CommandSyntax& syntax, SuppressionOptions& options) {
       syntax.texts("ADDRESS", options.addresses, "only these addresses").repeated();
       add_topic_option(syntax, options);
     }},
    {"add", "suppress addresses", add, add_change},
    {"remove", "let addresses get mails again", remove, add_change},
    {"import", "suppress the addresses in the lines of standard input", import_lines, add_reason},
    {"export", "write all suppressed addresses as lines of JSON", export_all, nullptr},
};

Run add_suppression(CommandSyntax& syntax) {
  auto options = std::make_shared<SuppressionOptions>();
  const auto chosen = syntax.commands(suppression_actions, *options);
  return [options, chosen](Context& context) {
    const auto connection = context.connect_to_schema("suppression", {"mailroom_suppressions"});
    return (*chosen)->run(*options, *connection, context);
  };
}

}  // namespace

const Command suppression_command{
    "suppression", "show and change which addresses get no more mails",
    "Examples:\n"
    "  mailroom suppression list                                    the newest first\n"
    "  mailroom suppression remove ada@example.org --reason \"she asked\"\n"
    "  mailroom suppression import < list.csv                       an address a line\n",
    add_suppression,
    "An address is suppressed by a hard bounce or a complaint that mailroom bounce reads, or by an operator. A mail to it ends as "
    "cancelled, before a relay sees it, unless its action is security mail, such as a password recovery. It gets mails again "
    "when it is removed, or, after a bounce, when a report says that a mail was delivered.\n\n"
    "Whoever unsubscribes from a topic, or complains about a mail of one, is suppressed for that topic alone, and so it is with --topic: "
    "all other mails go to the address.\n\n"
    "import reads standard input: an address a line, CSV, whose first line may name the columns, JSON of providers, or what export writes. Each change is recorded with "
    "its reason and who made it."};

}  // namespace mailroom::cmd
