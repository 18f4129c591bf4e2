// RFC 5321, section 2.3.8: CR and LF stand for a line end together only. Programs write LF, and some CR CR
// LF.

#include "sendmail/mail_text.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mail/message.hpp"
#include "sendmail/address_list.hpp"
#include "submission/header_fields.hpp"

namespace mailroom::sendmail {
namespace {

bool has_field(const submission::SplitMail& mail, std::string_view name) {
  return std::ranges::any_of(mail.fields, [&](const auto& field) { return field.name == name; });
}

std::vector<std::string> addresses_of(const submission::SplitMail& mail,
                                      const std::vector<std::string_view>& names) {
  std::vector<std::string> found;
  for (const auto& field : mail.fields) {
    if (std::ranges::find(names, field.name) == names.end()) continue;
    for (auto& address : addresses_in(std::string(field.value)))
      found.push_back(std::move(address));
  }
  return found;
}

/// RFC 5322, section 3.6.6: those of the last resender, if there is one.
std::vector<std::string> named_in_header(const submission::SplitMail& mail) {
  auto found = addresses_of(mail, {"resent-to", "resent-cc", "resent-bcc"});
  return found.empty() ? addresses_of(mail, {"to", "cc", "bcc"}) : found;
}

std::string quoted(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) >= 32 && c != 127) text += c;
  }
  return "\"" + text + "\"";
}

/// What a header has to have, and this one lacks.
std::string missing_fields(const submission::SplitMail& mail, const Mail& envelope, const std::string& name,
                           const Caller& caller) {
  std::string fields;
  if (!has_field(mail, "from")) {
    const auto address = envelope.sender.empty() ? caller.user : envelope.sender;
    fields += name.empty() ? fmt::format("From: {}\r\n", address)
                           : fmt::format("From: {} <{}>\r\n", quoted(name), address);
  }
  if (!has_field(mail, "date")) fields += fmt::format("Date: {}\r\n", mail::date_header_text(caller.now));
  if (!has_field(mail, "message-id"))
    fields += fmt::format("Message-ID: <{}@{}>\r\n", caller.random, caller.host);
  return fields;
}

void refuse_control(const std::string& address) {
  if (std::ranges::none_of(address,
                           [](unsigned char c) { return c < 33 || c == 127 || c == '<' || c == '>'; }))
    return;
  throw Error(ExitCode::usage, fmt::format("'{}' is no address", address),
              "an address is written as ada@shop.example");
}

}  // namespace

std::string with_line_ends(std::string_view input, bool ends_at_dot) {
  std::string text;
  text.reserve(input.size() + input.size() / 32);
  for (bool is_first = true; !input.empty(); is_first = false) {
    const auto end = std::min(input.find('\n'), input.size());
    auto line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    while (line.ends_with('\r'))
      line.remove_suffix(1);
    if (is_first && (line.starts_with("From ") || line.starts_with(">From "))) continue;
    if (ends_at_dot && line == ".") break;
    for (const char c : line)
      c == '\r' ? text.append("\r\n") : text.append(1, c);
    text += "\r\n";
  }
  return text;
}

Mail make_mail(const Arguments& arguments, std::string_view input, const Caller& caller) {
  Mail mail;
  mail.sender = arguments.sender.value_or(caller.user);
  // Some give `Ada <ada@x.example>`.
  if (const auto named = addresses_in(mail.sender); named.size() == 1) mail.sender = named.front();
  mail.text = with_line_ends(input, arguments.ends_at_dot);
  const auto header = submission::split_mail(mail.text);
  const auto add = [&](const std::string& address) {
    refuse_control(address);
    if (std::ranges::find(mail.recipients, address) == mail.recipients.end())
      mail.recipients.push_back(address);
  };
  for (const auto& operand : arguments.recipients) {
    auto found = addresses_in(operand);
    // The service says what is wrong with one that is none.
    if (found.empty()) found.push_back(operand);
    std::ranges::for_each(found, add);
  }
  if (arguments.reads_recipients) std::ranges::for_each(named_in_header(header), add);
  if (mail.recipients.empty())
    throw Error(ExitCode::usage, "nobody gets this mail",
                arguments.reads_recipients ? "its To, Cc and Bcc name no address"
                                           : "name a recipient, or take those of the header with -t");
  if (!mail.sender.empty()) refuse_control(mail.sender);
  const auto missing =
      missing_fields(header, mail, arguments.name.empty() ? caller.name : arguments.name, caller);
  // A text that begins with no header is a body.
  const bool has_header = !header.fields.empty() || header.rest.starts_with("\r\n");
  mail.text.insert(0, missing + (has_header ? "" : "\r\n"));
  return mail;
}

}  // namespace mailroom::sendmail
