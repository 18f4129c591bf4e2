// mailroom topic: lists, creates, changes and retires what people can unsubscribe from.

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/context.hpp"
#include "cmd/terminal/text_table.hpp"
#include "suppression/topics.hpp"

namespace mailroom::cmd {
namespace {

struct TopicOptions {
  std::string name;
  std::optional<std::string> title;
  std::vector<std::string> titles;  ///< each LOCALE=TITLE
  std::optional<std::string> profile;
  bool is_back = false;
  std::string reason;
};

/// The options that say what a topic is.
suppression::TopicChange change_of(const TopicOptions& options) {
  suppression::TopicChange change{.title = options.title};
  for (const auto& item : options.titles) {
    const auto equals = item.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ExitCode::usage, fmt::format("--title-in is '{}'", shown_text(item)),
                  "write it as de=TITLE; de= removes it");
    }
    change.titles[item.substr(0, equals)] = item.substr(equals + 1);
  }
  if (options.profile) change.profile = *options.profile == "none" ? "" : *options.profile;
  return change;
}

nlohmann::ordered_json json_of(const suppression::Topic& topic) {
  return {{"topic", topic.name},         {"title", topic.title},
          {"titles", topic.titles},      {"profile", text_or_null<nlohmann::ordered_json>(topic.profile)},
          {"retired", topic.is_retired}, {"unsubscribed", topic.unsubscribed}};
}

std::string list_text(const std::vector<suppression::Topic>& topics, std::size_t width) {
  if (topics.empty()) return "there is no topic: mailroom topic create makes one\n";
  TextTable table(
      {{"topic"}, {"title"}, {"also in"}, {"profile"}, {"unsubscribed", TextTable::Align::right}});
  for (const auto& topic : topics) {
    std::vector<std::string> locales;
    for (const auto& each : topic.titles)
      locales.push_back(each.first);
    table.add({topic.name + (topic.is_retired ? " (retired)" : ""), shown_text(topic.title),
               locales.empty() ? "-" : joined(locales),
               topic.profile.empty() ? "all" : shown_text(topic.profile),
               with_thousands(topic.unsubscribed)});
  }
  return table.render(width);
}

ExitCode topic_list(const TopicOptions& /*options*/, db::Connection& connection, Context& context) {
  const auto topics = suppression::list_topics(connection);
  if (context.global().output == OutputFormat::json) {
    for (const auto& topic : topics)
      context.print(json_text(json_of(topic)) + "\n");
  } else {
    context.print(list_text(topics, context.out().width()));
  }
  return ExitCode::done;
}

ExitCode topic_create(const TopicOptions& options, db::Connection& connection, Context& context) {
  suppression::create_topic(connection, options.name, change_of(options),
                            queue::operator_author(connection, options.reason));
  context.print(fmt::format("done: messages may have the topic {}\n", options.name));
  return ExitCode::done;
}

ExitCode topic_change(const TopicOptions& options, db::Connection& connection, Context& context) {
  auto change = change_of(options);
  if (options.is_back) change.is_retired = false;
  suppression::change_topic(connection, options.name, change,
                            queue::operator_author(connection, options.reason));
  context.print("done\n");
  return ExitCode::done;
}

ExitCode topic_retire(const TopicOptions& options, db::Connection& connection, Context& context) {
  suppression::change_topic(connection, options.name, {.is_retired = true},
                            queue::operator_author(connection, options.reason));
  context.print(
      fmt::format("done: new messages of {} are refused; the links of its mails work\n", options.name));
  return ExitCode::done;
}

void add_name(CommandSyntax& syntax, TopicOptions& options) {
  syntax.text("NAME", options.name, "name of the topic: small letters, digits, hyphens, underscores")
      .required();
}

void add_properties(CommandSyntax& syntax, TopicOptions& options) {
  syntax.texts("--title-in LOCALE=TITLE", options.titles, "its title in a language, such as de=TITLE")
      .repeated();
  syntax.text("--profile NAME", options.profile,
              "show it beside others in the mails of this profile only; none: in all [none]");
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
}

void add_create(CommandSyntax& syntax, TopicOptions& options) {
  add_name(syntax, options);
  syntax.text("--title TITLE", options.title, "what its readers know it by").required();
  add_properties(syntax, options);
}

void add_change(CommandSyntax& syntax, TopicOptions& options) {
  add_name(syntax, options);
  syntax.text("--title TITLE", options.title, "what its readers know it by");
  add_properties(syntax, options);
  syntax.flag("--back", options.is_back, "take new messages of a retired topic again");
}

void add_retire(CommandSyntax& syntax, TopicOptions& options) {
  add_name(syntax, options);
  syntax.text("--reason TEXT", options.reason, "record TEXT as the reason");
}

constexpr Subcommand<TopicOptions, db::Connection&, Context&> topic_commands[] = {
    {"list", "show all topics, and how many have unsubscribed", topic_list, nullptr},
    {"create", "create a topic", topic_create, add_create},
    {"change", "change the titles of a topic, or where it is shown", topic_change, add_change},
    {"retire", "refuse new messages of a topic", topic_retire, add_retire},
};

Run add_topic(CommandSyntax& syntax) {
  auto options = std::make_shared<TopicOptions>();
  const auto chosen = syntax.commands(topic_commands, *options);
  return [options, chosen](Context& context) {
    const auto connection = context.connect_to_schema("topic", {"mailroom_topics"});
    return (*chosen)->run(*options, *connection, context);
  };
}

}  // namespace

const Command topic_command{
    "topic", "define what people can unsubscribe from",
    "Examples:\n"
    "  mailroom topic create news --title 'Monthly news' --title-in 'de=Neues'\n"
    "  mailroom topic change news --title 'Weekly news'\n"
    "  mailroom topic list                   the titles, and how many have left\n",
    add_topic,
    "A message with a topic is a mail that its reader can stop, and that topic alone: SELECT "
    "mailroom_send(ARRAY['ada@example.org'], template => 'news', topic => 'news'). It leaves with the headers for one click "
    "(RFC 8058) and with links for its template. A message without a topic has none, and nobody stops it so.\n\n"
    "The titles are what the page of preferences shows, in the language of the mail or of the browser. A topic is never "
    "removed: who has unsubscribed stays so. mailroom suppression shows and changes who that is. Each change is "
    "recorded."};

}  // namespace mailroom::cmd
