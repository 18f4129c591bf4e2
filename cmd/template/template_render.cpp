// Stands in for a link or sender that is not configured, and says so on stderr.

#include "cmd/template/template_render.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "accounts/account_lookup.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/text.hpp"
#include "mail/configured_mail.hpp"
#include "mail/message.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::cmd {
namespace {

constexpr auto example_link = "https://app.example/{action}?token={token}";
constexpr auto example_sender = "Example <no-reply@app.example>";

/// The recipient's address, or nullopt for one that cannot be mailed; says on stderr what stands in the way.
/// Throws Error(unusable) for the latter if the whole message is wanted.
std::optional<mail::Address> address_of(const std::string& email, RenderedPart part, Context& context) {
  auto address = mail::parse_address(email);
  if (const auto* refusal = std::get_if<mail::Refusal>(&address)) {
    const auto problem = fmt::format("{} cannot be mailed: {}", shown_text(email), refusal->reason);
    if (part == RenderedPart::message)
      throw Error(ExitCode::unusable, problem, "render without --message to see the rest of the mail");
    context.log().warn(problem);
    return std::nullopt;
  }
  if (mail::needs_smtputf8(std::get<mail::Address>(address)))
    context.log().warn("the address needs a relay that offers SMTPUTF8");
  return std::get<mail::Address>(std::move(address));
}

std::string with_line_end(const std::string& text) {
  return text.ends_with('\n') ? text : text + "\n";
}

std::string shown_part(const mail::MailContent& mail, RenderedPart part) {
  if (part == RenderedPart::subject) return mail.subject + "\n";
  if (part == RenderedPart::text) return with_line_end(*mail.text);
  if (part == RenderedPart::html) return with_line_end(*mail.html);
  return fmt::format("Subject: {}\n\n{}", mail.subject, with_line_end(mail.text ? *mail.text : *mail.html));
}

/// The part that is shown must be there.
void require_part(const mail::MailContent& content, const RenderOptions& options) {
  const auto& name = options.mail.template_name;
  if (!content.html && options.part == RenderedPart::html)
    throw Error(
        ExitCode::configuration, fmt::format("the mail for {} has no HTML", name),
        fmt::format("add {}.html to send.templates; a set with {}.txt alone sends text only", name, name));
  if (!content.text && options.part == RenderedPart::text)
    throw Error(
        ExitCode::configuration, fmt::format("the mail for {} has no text", name),
        fmt::format("add {}.txt to send.templates; a set with {}.html alone sends HTML only", name, name));
}

/// `message` is empty unless it was asked for.
std::string render_mail_json(const compose::MailDraft& draft, const std::string& message) {
  nlohmann::ordered_json object{{"template", draft.template_name},
                                {"email", draft.values.email},
                                {"subject", draft.content.subject},
                                {"text", optional_json<nlohmann::ordered_json>(draft.content.text)},
                                {"html", optional_json<nlohmann::ordered_json>(draft.content.html)}};
  if (!message.empty()) object["message"] = message;
  return json_text(object) + "\n";
}

/// Puts what the template makes into the draft, and returns the whole mail, which is for `to`. Throws as
/// refuse_example() if a sender would refuse it.
std::string write_example(compose::MailDraft& draft, const ExampleMail& mail,
                          const compose::MailWriter& writer, const mail::Address& to) {
  if (const auto refusal = writer.render(draft)) refuse_example(mail, *refusal, writer.template_names());
  auto whole = draft;
  whole.template_name.clear();
  whole.content.to = {{.name = "", .address = to}};
  auto written = writer.write(std::move(whole), to);
  if (const auto* refusal = std::get_if<mail::Refusal>(&written))
    refuse_example(mail, *refusal, writer.template_names());
  return std::get<compose::WrittenMail>(std::move(written)).message;
}

compose::MailWriter example_writer(const mail::Mailbox& from, const mail::LinkTemplate& link,
                                   const mail::ConfiguredMail& configured, const config::Settings& settings,
                                   std::shared_ptr<const templates::TemplateSet> templates) {
  return {from, mail::MessageBuilder(from, configured.reply_to, configured.headers), std::move(templates),
          link, static_cast<std::size_t>(settings.send.max_size)};
}

constexpr auto example_code = "12345";
constexpr std::chrono::minutes example_lifetime{15};

}  // namespace

mail::LinkTemplate example_link_template() {
  return std::get<mail::LinkTemplate>(mail::LinkTemplate::parse(example_link));
}

mail::Mailbox example_mailbox() {
  return std::get<mail::Mailbox>(mail::parse_mailbox(example_sender));
}

mail::LinkTemplate link_or_example(const mail::ConfiguredMail& configured, Context& context) {
  if (configured.link) return *configured.link;
  context.log().warn("send.link is not configured; the link is an example");
  return example_link_template();
}

mail::Mailbox sender_or_example(const mail::ConfiguredMail& configured, Context& context) {
  if (configured.from) return *configured.from;
  context.log().warn("send.from is not configured; the sender is an example");
  return example_mailbox();
}

ExitCode run_template_render(const RenderOptions& options, Context& context) {
  const auto settings = config::with_profile(context.settings(), options.mail.profile);
  const auto configured = mail::parse_configured_mail(settings);
  auto templates =
      std::make_shared<const templates::TemplateSet>(templates::load_templates(settings.send.templates));
  auto draft = example_draft(options.mail, example_created_at, context);
  const bool is_whole = options.part == RenderedPart::message;
  const auto link = link_or_example(configured, context);
  const auto from =
      is_whole ? sender_or_example(configured, context) : configured.from.value_or(example_mailbox());
  const auto to = address_of(draft.values.email, options.part, context);
  const auto message = write_example(draft, options.mail,
                                     example_writer(from, link, configured, settings, std::move(templates)),
                                     to.value_or(example_mailbox().address));
  require_part(draft.content, options);
  if (const auto problem = templates::problem_of_html_size(draft.content.html.value_or("").size());
      !problem.empty())
    context.log().warn(problem);
  context.log().warn("the token is an example and does not verify");
  if (context.global().output == OutputFormat::json) {
    context.print(render_mail_json(draft, is_whole ? message : std::string()));
  } else if (is_whole) {
    // As it is: its line ends are CRLF, and it has no other control character.
    context.out().write(message);
  } else {
    context.print(shown_part(draft.content, options.part));
  }
  return ExitCode::done;
}

namespace {

/// Why the reader of a part of a mail with a topic finds no way out in it; empty if he does, or there is no
/// such part.
std::string problem_of_unsubscribing(const char* part, const std::optional<std::string>& content,
                                     const templates::TemplateValues& values) {
  const auto shows = [&](const std::string& link) { return content->find(link) != std::string::npos; };
  if (!content || shows(*values.unsubscribe_link) || shows(*values.preferences_link)) return {};
  return fmt::format(
      "its {} has neither {{{{unsubscribe_link}}}} nor {{{{preferences_link}}}}, by which its reader unsubscribes",
      part);
}

}  // namespace

std::vector<std::string> try_template(const ExampleMail& mail,
                                      std::shared_ptr<const templates::TemplateSet> templates,
                                      const config::Settings& settings, Context& context) {
  const auto configured = mail::parse_configured_mail(settings);
  auto draft = example_draft(mail, example_created_at, context);
  const auto address = mail::parse_address(draft.values.email);
  if (const auto* refusal = std::get_if<mail::Refusal>(&address))
    refuse_example(mail, *refusal, templates->names());
  write_example(draft, mail,
                example_writer(configured.from.value_or(example_mailbox()),
                               configured.link.value_or(example_link_template()), configured, settings,
                               std::move(templates)),
                std::get<mail::Address>(address));
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) {
    if (!text.empty()) warnings.push_back(fmt::format("the mail of {}: {}", mail.template_name, text));
  };
  warn(templates::problem_of_html_size(draft.content.html.value_or("").size()));
  if (mail.has_topic) {
    warn(problem_of_unsubscribing("text", draft.content.text, draft.values));
    warn(problem_of_unsubscribing("HTML", draft.content.html, draft.values));
  }
  return warnings;
}

compose::MailDraft draft_of_example(const std::string& template_name, const std::string& locale,
                                    Moment created_at) {
  compose::MailDraft draft{.content = {.date = created_at, .key = "0000000000000000"},
                           .template_name = template_name,
                           .locale = locale,
                           .purpose = templates::DataFor::preview,
                           .values = {.action = template_name,
                                      .email = "user1@mail.example",
                                      .login = "user1",
                                      .token = std::string(example_token),
                                      .code = "",
                                      .unsubscribe_link = "https://app.example/u/example-link",
                                      .preferences_link = "https://app.example/u/example-preferences",
                                      .valid_from = created_at,
                                      .expires_at = created_at + example_lifetime}};
  const auto* builtin = templates::find_builtin(template_name, templates::MailPart::text);
  if (builtin == nullptr || builtin->shows_code) draft.values.code = example_code;
  return draft;
}

compose::MailDraft example_draft(const ExampleMail& mail, Moment created_at, Context& context) {
  auto draft = draft_of_example(mail.template_name, mail.locale, created_at);
  draft.content.queue = context.settings().collect.queues.front();
  if (mail.data_file) draft.data = templates::read_data_file(*mail.data_file);
  if (mail.account) {
    const auto connection = context.connect_to_schema("template");
    auto found = accounts::find_accounts(*connection, {*mail.account}).front();
    draft.values.email = std::move(found.email);
    draft.values.login = std::move(found.login);
  }
  return draft;
}

std::vector<Option> add_example_options(CommandSyntax& syntax, ExampleMail& mail, const std::string& prefix) {
  return {
      syntax.text("--data FILE", mail.data_file, prefix + "the data of the message, a JSON object in FILE"),
      syntax.text("--locale LOCALE", mail.locale, prefix + "the locale of the reader, such as de-AT"),
      syntax.text("--account NAME", mail.account,
                  prefix + "use the email and login of this account, named by id, email or login")};
}

Option add_profile_option(CommandSyntax& syntax, ExampleMail& mail, const std::string& prefix) {
  return syntax.text("--profile NAME", mail.profile,
                     prefix + "use the sender, link and templates of this profile [default]");
}

void refuse_example(const ExampleMail& mail, const mail::Refusal& refusal,
                    const std::vector<std::string>& template_names) {
  const bool is_known =
      std::find(template_names.begin(), template_names.end(), mail.template_name) != template_names.end();
  throw Error(ExitCode::configuration, "the mail cannot be written: " + refusal.reason,
              !is_known        ? fmt::format("templates: {}", joined(template_names, ", "))
              : mail.data_file ? fmt::format("the data is that of {}", shown_text(*mail.data_file))
                               : "--data FILE has the data of a message; the account has the other values");
}

}  // namespace mailroom::cmd
