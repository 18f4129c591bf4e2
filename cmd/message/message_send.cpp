// send: reads files and times, and asks for the message.

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cmd/message/message_action.hpp"

namespace mailroom::cmd {
namespace {

std::string whole_stream(std::istream& stream) {
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string read_given_file(const std::string& path) {
  if (path == "-") return whole_stream(std::cin);
  std::ifstream file(path, std::ios::binary);
  auto text = whole_stream(file);
  if (file.is_open() && !file.bad() && !std::filesystem::is_directory(path)) return text;
  throw Error(ExitCode::usage, fmt::format("cannot read {}", path), "give the path of a file");
}

/// By the end of the name; what is not listed is for no program in particular.
std::string type_of(const std::filesystem::path& path) {
  static const std::vector<std::pair<std::string, std::string>> types{
      {".pdf", "application/pdf"},   {".png", "image/png"},       {".jpg", "image/jpeg"},
      {".jpeg", "image/jpeg"},       {".gif", "image/gif"},       {".txt", "text/plain"},
      {".csv", "text/csv"},          {".html", "text/html"},      {".ics", "text/calendar"},
      {".json", "application/json"}, {".zip", "application/zip"}, {".xml", "application/xml"}};
  const auto extension = lower_case(path.extension().string());
  for (const auto& [end, type] : types)
    if (end == extension) return type;
  return "application/octet-stream";
}

std::string headers_json(const std::vector<std::string>& headers) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& header : headers) {
    const auto colon = header.find(':');
    if (colon == std::string::npos || colon == 0) {
      throw Error(ExitCode::usage, fmt::format("--header is '{}', and must have a name and a value", header),
                  "for example --header 'X-Order: 17'");
    }
    object[header.substr(0, colon)] = trimmed(std::string_view(header).substr(colon + 1));
  }
  return json_text(object);
}

/// A moment to come: a duration from `now` on, or a date.
Moment read_time(const std::string& option, const std::string& text, Moment now) {
  if (const auto duration = parse_duration(text)) return now + *duration;
  if (const auto moment = parse_moment(text, now)) return *moment;
  throw Error(ExitCode::usage, fmt::format("{} is '{}', and must be a time", option, text),
              "for example 2h for in two hours, 2026-11-21T09:30 (UTC), or 2026-11-21T09:30+02:00");
}

}  // namespace

Moment read_send_after(const std::string& text, Moment now) {
  return text == "now" ? now : read_time("--send-after", text, now);
}

namespace {

/// What no clock is needed for.
messages::NewMessage message_of(const MessageSendOptions& options) {
  auto message = options.message;
  if (message.data && try_parse_json(*message.data).is_discarded())
    throw Error(ExitCode::usage, "--data is no JSON", R"(for example --data '{"order": 17}')");
  if (message.replace && !message.key)
    throw Error(ExitCode::usage, "--replace needs --key", "the key says which message is replaced");
  if (!options.headers.empty()) message.headers = headers_json(options.headers);
  if (!options.text_file.empty()) message.text = read_given_file(options.text_file);
  if (!options.html_file.empty()) message.html = read_given_file(options.html_file);
  if (!options.data_file.empty()) message.data = read_given_file(options.data_file);
  for (const auto& path : options.files) {
    message.files.push_back({.name = std::filesystem::path(path).filename().string(),
                             .type = type_of(path),
                             .content = read_given_file(path)});
  }
  return message;
}

void set_times(messages::NewMessage& message, const MessageSendOptions& options, Moment now) {
  if (!options.send_after.empty()) message.send_after = read_send_after(options.send_after, now);
  if (options.expires_at.empty()) return;
  message.expires_at =
      options.expires_at == "never" ? year_10000 : read_time("--expires-at", options.expires_at, now);
}

/// What became of the message that had the key before.
std::string replaced_text(const messages::SentMessage& sent) {
  if (!sent.replaced) return "";
  const auto id = *sent.replaced;
  if (sent.had_left)
    return fmt::format("message {} with this key had left before, so its recipients get another mail\n", id);
  if (sent.is_leaving)
    return fmt::format("message {} with this key is being sent just now: its mail may still leave\n", id);
  return fmt::format("message {} with this key is cancelled: it had not left\n", id);
}

std::string sent_text(const messages::SentMessage& sent, const messages::NewMessage& message, Moment now) {
  if (!sent.is_new) return fmt::format("message {} has this key already; nothing is sent\n", sent.id);
  if (message.send_after && *message.send_after > now)
    return fmt::format("message {}, to be sent {}\n", sent.id, moment_from(*message.send_after, now));
  return fmt::format("message {}; mailroom message show {} says what becomes of it\n", sent.id, sent.id);
}

/// The hints of mailroom_send(), which name its arguments, in the words of this command.
std::string hint_for_options(const std::string& hint) {
  static const std::vector<std::pair<std::string, std::string>> hints{
      {R"(use another key, or options => '{"replace": true}')", "use another --key, or --replace"},
      {"recipients is an array of mailboxes: ARRAY['ada@example.org']",
       "give --to ada@example.org, or --action and --account"},
      {"leave recipients, cc and bcc null", "give --account without --to, --cc and --bcc"},
      {"set template, or subject with text or html",
       "give --template, or --subject with --text or --html-file"},
      {"set template and data, or subject with text or html",
       "give --template with --data, or --subject with --text or --html-file"},
      {"set template and data", "give --template and --data"},
      {"set subject with text or html", "give --subject with --text or --html-file"},
      {"set text or html", "give --text, --text-file or --html-file"},
      {"account is the id of a row of accounts", "--account is the id of a row of accounts"},
      {"expires_at may be infinity", "--expires-at is after --send-after, or never"},
      {"sender, reply_to, recipients, cc, bcc, subject and attachments are columns of their own",
       "--from, --reply-to, --to, --cc, --bcc, --subject and --attach set what mailroom writes"},
      {"the owner of the tables creates it with mailroom_create_action()",
       "mailroom action list shows the actions, and mailroom action create makes one"}};
  for (const auto& [words, typed] : hints)
    if (hint == words) return typed;
  return hint;
}

messages::SentMessage send_as_typed(db::Connection& connection, const messages::NewMessage& message) {
  try {
    return messages::send_message(connection, message);
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    throw Error(error.code(), error.what(), hint_for_options(error.hint()));
  }
}

nlohmann::ordered_json sent_json(const messages::SentMessage& sent) {
  nlohmann::ordered_json object{{"message", sent.id}, {"new", sent.is_new}};
  if (!sent.replaced) return object;
  object["replaced"] = *sent.replaced;
  object["replaced_had_left"] = sent.had_left;
  object["replaced_is_leaving"] = sent.is_leaving;
  return object;
}

}  // namespace

ExitCode message_send(const MessageOptions& options, Context& context) {
  auto message = message_of(options.send);
  set_times(message, options.send, {});
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  const auto now = connection->server_time();
  set_times(message, options.send, now);
  const auto sent = send_as_typed(*connection, message);
  if (context.global().output == OutputFormat::json) {
    context.print(json_text(sent_json(sent)) + "\n");
  } else {
    context.print(sent_text(sent, message, now) + replaced_text(sent));
  }
  return ExitCode::done;
}

}  // namespace mailroom::cmd
