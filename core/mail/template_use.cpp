// Renders a template with marked values, and searches what a reader would see for the marks.

#include "mail/template_use.hpp"

#include "mail/template_values.hpp"

namespace mailroom {
namespace {

// Values that no template contains by chance.
constexpr auto link_mark = "mark0link";
constexpr auto token_mark = "mark0token";
constexpr auto code_mark = "mark0code";

TemplateVariables marked_variables(MailAction action) {
  auto variables = variables_of({.action = action,
                                 .email = "a@b.example",
                                 .login = "a",
                                 .link = link_mark,
                                 .token = token_mark,
                                 .code = code_mark});
  return variables;
}

/// Without what a mail program does not show.
std::string without_comments(const std::string& html) {
  std::string shown;
  std::size_t at = 0;
  for (auto begin = html.find("<!--"); begin != std::string::npos; begin = html.find("<!--", at)) {
    shown += html.substr(at, begin - at);
    const auto end = html.find("-->", begin);
    if (end == std::string::npos) return shown;
    at = end + 3;
  }
  return shown + html.substr(at);
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

}  // namespace

std::vector<std::string> uses_missing(const MustacheTemplate& part_template, MailAction action,
                                      MailPart part) {
  auto text = part_template.render(MustacheValues(marked_variables(action)));
  if (part == MailPart::html) text = without_comments(text);
  if (part == MailPart::subject)
    return is_blank(text) ? std::vector<std::string>{"the subject is empty"} : std::vector<std::string>{};
  if (is_blank(text))
    return {part == MailPart::html ? "it is empty, and the HTML is what readers are shown: the mail is blank"
                                   : "it is empty: the mail is blank where HTML is not shown"};
  const auto shows = [&](const char* mark) { return text.find(mark) != std::string::npos; };
  std::vector<std::string> missing;
  if (!shows(link_mark) && !shows(token_mark))
    missing.emplace_back("it has neither {{link}} nor {{token}}: its reader can do nothing with the mail");
  if (action == MailAction::recovery && !shows(code_mark))
    missing.emplace_back("it has no {{code}}, which a recovery asks for");
  return missing;
}

}  // namespace mailroom
