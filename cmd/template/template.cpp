// mailroom template: checks mail templates, and shows the mails that they make.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cmd/command.hpp"
#include "cmd/template/template_render.hpp"
#include "cmd/template/template_serve.hpp"
#include "cmd/terminal/text_table.hpp"
#include "mail/configured_mail.hpp"
#include "templates/template_set.hpp"

namespace mailroom::cmd {
namespace {

std::string source_text(const templates::TemplateSource& source) {
  if (source.kind == templates::TemplateSource::Kind::file) return shown_text(source.path);
  return source.kind == templates::TemplateSource::Kind::builtin ? "built-in"
                                                                 : "none, the mail has text only";
}

std::string sources_text(const templates::TemplateSet& templates, std::size_t width) {
  TextTable table({{""}, {""}});
  for (const auto& source : templates.sources())
    table.add({source.file, source_text(source)});
  return table.render(width);
}

std::string sources_json(const templates::TemplateSet& templates, const std::vector<std::string>& warnings) {
  nlohmann::ordered_json object{
      {"valid", true}, {"files", nlohmann::ordered_json::array()}, {"warnings", warnings}};
  for (const auto& source : templates.sources()) {
    nlohmann::ordered_json file{{"file", source.file}, {"source", nullptr}, {"path", nullptr}};
    if (source.kind != templates::TemplateSource::Kind::none)
      file["source"] = source.kind == templates::TemplateSource::Kind::file ? "file" : "built-in";
    if (source.kind == templates::TemplateSource::Kind::file) file["path"] = source.path;
    object["files"].push_back(std::move(file));
  }
  return json_text(object) + "\n";
}

ExitCode run_template_check(const ExampleMail& mail, Context& context) {
  const auto settings = config::with_profile(context.settings(), mail.profile);
  mail::parse_configured_mail(settings);
  const auto templates =
      std::make_shared<const templates::TemplateSet>(templates::load_templates(settings.send.templates));
  auto warnings = templates->warnings();
  if (!mail.template_name.empty()) {
    const auto found = try_template(mail, templates, settings, context);
    warnings.insert(warnings.end(), found.begin(), found.end());
  }
  if (context.global().output == OutputFormat::json) {
    context.print(sources_json(*templates, warnings));
    return ExitCode::done;
  }
  context.print(sources_text(*templates, context.out().width()));
  for (const auto& warning : warnings)
    context.say("warning: " + warning + "\n");
  context.say(
      "A running sender keeps the templates of its start until SIGHUP: systemctl reload 'mailroom-send@*', or kill -HUP PID "
      "without systemd.\n");
  return ExitCode::done;
}

/// The flags that choose what render shows; they exclude each other.
struct PartFlags {
  bool subject = false;
  bool text = false;
  bool html = false;
  bool message = false;

  RenderedPart chosen() const {
    if (subject) return RenderedPart::subject;
    if (text) return RenderedPart::text;
    if (html) return RenderedPart::html;
    return message ? RenderedPart::message : RenderedPart::subject_and_text;
  }
};

void add_parts(CommandSyntax& syntax, PartFlags& flags) {
  auto subject = syntax.flag("--subject", flags.subject, "show the subject only");
  auto text = syntax.flag("--text", flags.text, "show the text only");
  auto html = syntax.flag("--html", flags.html, "show the HTML");
  auto message = syntax.flag("--message", flags.message, "show the whole message, as SMTP carries it");
  subject.excludes(text).excludes(html).excludes(message);
  text.excludes(html).excludes(message);
  html.excludes(message);
}

enum class TemplateAction { check, render, serve };

void add_serve(CommandSyntax& syntax, ServeOptions& options, TemplateAction& action) {
  auto serve = syntax.command("serve", "show all templates in a page of a browser, which follows their files",
                              [&action] { action = TemplateAction::serve; });
  serve.text("--listen ADDRESS", options.listen,
             fmt::format("serve the page at this address and port [{}]", default_preview_address));
  serve.text("--message ID", options.message, "show this message of the database too, with an example link");
  serve.text("--profile NAME", options.profile,
             "use the sender, link and templates of this profile [default]");
}

Run add_template(CommandSyntax& syntax) {
  auto options = std::make_shared<RenderOptions>();
  auto flags = std::make_shared<PartFlags>();
  auto tried = std::make_shared<ExampleMail>(ExampleMail{.template_name = ""});
  auto served = std::make_shared<ServeOptions>();
  auto action = std::make_shared<TemplateAction>(TemplateAction::check);
  syntax.needs_command();
  auto check =
      syntax.command("check", "load the templates and list their files; exit code 3 on an error", [] {});
  auto checked = check.text("TEMPLATE", tried->template_name, "also make a mail of this template");
  for (auto option : add_example_options(check, *tried, ""))
    option.needs(checked);
  add_profile_option(check, *tried, "");
  check.flag("--topic", tried->has_topic, "warn if a mail with a topic has no link to unsubscribe")
      .needs(checked);
  auto render = syntax.command("render", "show the mail of TEMPLATE, with an example token",
                               [action] { *action = TemplateAction::render; });
  render.text("TEMPLATE", options->mail.template_name, "name of a template: activation, recovery or your own")
      .required();
  add_parts(render, *flags);
  add_example_options(render, options->mail, "");
  add_profile_option(render, options->mail, "");
  add_serve(syntax, *served, *action);
  return [options, flags, tried, served, action](Context& context) {
    options->part = flags->chosen();
    if (*action == TemplateAction::serve) return run_template_serve(*served, context);
    return *action == TemplateAction::render ? run_template_render(*options, context)
                                             : run_template_check(*tried, context);
  };
}

}  // namespace

const Command template_command{
    "template", "check mail templates, and show the mails they make",
    "Examples:\n"
    "  mailroom template check receipt --data order.json  check all, and make a mail\n"
    "  mailroom template render recovery --message        show the whole mail\n"
    "  mailroom template serve                            show all in a browser\n",
    add_template,
    "Shows what mails consist of, without sending any. The templates are Mustache files in the directory of "
    "send.templates: NAME.subject, NAME.txt and NAME.html, and NAME.de.txt for readers of one locale. A "
    "sender reads them when it starts and at SIGHUP (systemctl reload 'mailroom-send@*', or kill -HUP PID without systemd), so a "
    "changed file counts from then on. A built-in template replaces a missing file of activation and recovery, except that one with a .txt but no "
    ".html of its own is mailed as text only.\n\n"
    "check reads the settings of mails and every template. It lists where each comes from and what is "
    "probably wrong. A template that does not parse, names a variable that activation and recovery do not have "
    "or includes a partial that is missing or includes itself is an error with its file and line, and exit "
    "status 3. With TEMPLATE it also makes a mail with the data of --data: a name that neither the data nor "
    "mailroom has is such an error. --profile checks what that profile has of its own.\n\n"
    "render shows the mail for an example account, or for the account of --account, which it reads from the "
    "database. The token is an example that does not verify: the one real token of an account belongs in "
    "its mail only. --message shows every header, and each part as it is encoded.\n\n"
    "serve prints the address of a page that shows the templates as their readers get them: HTML at three widths, "
    "light and dark, text, headers, source and attachments, in each locale. It renders a mail again when a file "
    "changes. Where that cannot be done, the error with its file and line stands beside the last version that "
    "worked. Data are those of NAME.example.json beside the templates, or are typed into the page; --message shows the mail of "
    "a real message with an example link. Scripts and forms of a mail never work. Its links are not followed and remote "
    "images not loaded unless that is asked for in the page. The page is for this host; --listen with another address adds a secret "
    "to the one that is printed."};

}  // namespace mailroom::cmd
