// A template of any bytes is refused with its line, or renders what it says, whatever the data is.

#include "base/error.hpp"
#include "base/printable.hpp"
#include "fuzz/fuzz.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::fuzz::fuzz_mail_template {
namespace {

constexpr std::size_t largest = 64 * 1024;

/// No part of the alphabet of templates, so each occurrence in a mail is from the value.
constexpr auto hostile_value = "<{{login}}>'{{> a}}\"&{{=<% %>=}}";

templates::TemplateFiles files_of(Fields& fields) {
  return {.directory = "t",
          .texts = {{"activation.subject", std::string(fields.take())},
                    {"activation.txt", std::string(fields.take())},
                    {"activation.html", std::string(fields.take())},
                    {"a.mustache", std::string(fields.take())},
                    {"b.mustache", std::string(fields.take())}},
          .ignored = {}};
}

/// What `values` and `data` make of a template, in order, or the reason why not.
std::string shown(const templates::TemplateSet& set, const templates::TemplateChoice& choice,
                  const templates::TemplateValues& values, const std::string& data) {
  const auto scope = templates::template_scope(values, data);
  if (const auto* refusal = std::get_if<mail::Refusal>(&scope)) return refusal->reason;
  const auto mail = set.render(choice, std::get<templates::TemplateData>(scope), largest);
  if (const auto* refusal = std::get_if<mail::Refusal>(&mail)) {
    require(is_printable(refusal->reason), "a refusal is printable");
    return refusal->reason;
  }
  const auto& made = std::get<templates::RenderedMail>(mail);
  require(made.subject.size() <= largest && made.text->size() <= largest, "nothing is larger than allowed");
  return made.subject + "\n" + *made.text + "\n" + made.html.value_or("");
}

void check(const templates::TemplateFiles& files) {
  const templates::TemplateSet set(files);
  templates::TemplateValues values{.action = "activation", .login = "", .link = ""};
  require(is_utf8(shown(set, {.name = "activation"}, values, "")), "empty values give valid UTF-8");
  values.login = values.email = hostile_value;
  values.link = values.token = hostile_value;
  const auto once = shown(set, {.name = "activation"}, values, "");
  require(is_utf8(once), "a mail is valid UTF-8");
  require(once == shown(set, {.name = "activation"}, values, ""), "the same values give the same mail");
}

/// The same texts as a template of another name, for one locale, with data of any bytes.
void check_with_data(const templates::TemplateFiles& files, const std::string& data,
                     const std::string& locale) {
  auto own = files;
  own.texts.erase("activation.subject");
  own.texts["receipt.subject"] = "{{#a}}x{{/a}}";
  own.texts["receipt.txt"] = files.texts.at("activation.txt");
  own.texts["receipt.de.html"] = files.texts.at("activation.html");
  own.texts.erase("activation.txt");
  own.texts.erase("activation.html");
  const templates::TemplateSet set(own);
  const templates::TemplateValues values{.action = "message", .email = "a@b.example"};
  const auto once = shown(set, {.name = "receipt", .locale = locale}, values, data);
  require(is_utf8(once), "a mail is valid UTF-8");
  require(once == shown(set, {.name = "receipt", .locale = locale}, values, data),
          "the same data gives the same mail");
}

void refuse_soundly(const Error& error) {
  const std::string message = error.what();
  require(error.code() == ExitCode::configuration, "it is an error of the configuration");
  require(message.starts_with("t/"), "an error names its file");
  require(is_printable(message), "an error is printable");
  const auto line = message.substr(std::min(message.find(':') + 1, message.size()), 1);
  require(line >= "1" && line <= "9", "an error names its line");
}

int run(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto files = files_of(fields);
  const std::string json(fields.take());
  const std::string locale(fields.take());
  try {
    check(files);
  } catch (const Error& error) {
    refuse_soundly(error);
  }
  try {
    check_with_data(files, json, locale);
  } catch (const Error& error) {
    refuse_soundly(error);
  }
  return 0;
}

const Target target("mail_template", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_mail_template
