// A template of any bytes is refused with its line, or renders what it says, whatever the values are.

#include "base/error.hpp"
#include "base/printable.hpp"
#include "fuzz/fuzz.hpp"
#include "mail/template_set.hpp"

using namespace mailroom;
using fuzz::require;

namespace {

/// No part of the alphabet of templates, so each occurrence in a mail is from the value.
constexpr auto hostile_value = "<{{login}}>'{{> a}}\"&{{=<% %>=}}";

TemplateFiles files_of(fuzz::Fields& fields) {
  return {.directory = "t",
          .texts = {{"activation.subject", std::string(fields.take())},
                    {"activation.txt", std::string(fields.take())},
                    {"activation.html", std::string(fields.take())},
                    {"a.mustache", std::string(fields.take())},
                    {"b.mustache", std::string(fields.take())}},
          .ignored = {}};
}

/// What `values` make of the templates, in order.
std::string shown(const TemplateSet& set, const TemplateValues& values) {
  const auto mail = set.render(values);
  require(mail.subject.find('\n') == std::string::npos, "a subject is one line");
  return mail.subject + "\n" + mail.text + "\n" + *mail.html;
}

void check(const TemplateFiles& files) {
  const TemplateSet set(files);
  TemplateValues values{.action = MailAction::activation};
  require(is_utf8(shown(set, values)), "empty values give valid UTF-8");
  values.login = values.email = values.link = values.token = hostile_value;
  const auto once = shown(set, values);
  require(is_utf8(once), "a mail is valid UTF-8");
  require(once == shown(set, values), "the same values give the same mail");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Fields fields(data, size);
  const auto files = files_of(fields);
  try {
    check(files);
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == ExitCode::configuration, "it is an error of the configuration");
    require(message.starts_with("t/"), "an error names its file");
    require(is_printable(message), "an error is printable");
    // An error of the library alone, or of the trial, has no line.
    const auto line = message.substr(std::min(message.find(':') + 1, message.size()), 1);
    require(line >= "1" && line <= "9", "an error names its line, so the check finds what the library would");
  }
  return 0;
}
