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

std::string build_message(mail::MailContent content, const mail::ConfiguredMail& configured,
                          const mail::Address& to, Context& context) {
  const mail::MessageBuilder builder(sender_or_example(configured, context), configured.reply_to,
                                     configured.headers);
  content.queue = context.settings().collect.queues.front();
  content.key = "0000000000000000";
  content.to = {{.name = "", .address = to}};
  auto message = builder.build(content);
  if (const auto* refusal = std::get_if<mail::Refusal>(&message)) {
    throw Error(ExitCode::unusable, "the mail cannot be built: " + refusal->reason,
                "the value is the email or login of the account, or of the data");
  }
  return std::get<std::string>(std::move(message));
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

/// Puts what the template makes into the content.
void render(compose::MailDraft& draft, const ExampleMail& mail, const templates::TemplateSet& templates,
            std::size_t largest) {
  const auto scope = templates::template_scope(draft.values, draft.data, draft.purpose);
  if (const auto* refusal = std::get_if<mail::Refusal>(&scope))
    refuse_example(mail, *refusal, templates.names());
  auto rendered = templates.render({.name = draft.template_name, .locale = draft.locale},
                                   std::get<templates::TemplateData>(scope), largest);
  if (const auto* refusal = std::get_if<mail::Refusal>(&rendered))
    refuse_example(mail, *refusal, templates.names());
  auto& made = std::get<templates::RenderedMail>(rendered);
  draft.content.subject = std::move(made.subject);
  draft.content.text = std::move(made.text);
  draft.content.html = std::move(made.html);
}

constexpr auto example_code = "12345";
constexpr std::chrono::minutes example_lifetime{15};

}  // namespace

mail::LinkTemplate link_or_example(const mail::ConfiguredMail& configured, Context& context) {
  if (configured.link) return *configured.link;
  context.log().warn("send.link is not configured; the link is an example");
  return std::get<mail::LinkTemplate>(mail::LinkTemplate::parse(example_link));
}

mail::Mailbox sender_or_example(const mail::ConfiguredMail& configured, Context& context) {
  if (configured.from) return *configured.from;
  context.log().warn("send.from is not configured; the sender is an example");
  return std::get<mail::Mailbox>(mail::parse_mailbox(example_sender));
}

ExitCode run_template_render(const RenderOptions& options, Context& context) {
  const auto settings = config::with_profile(context.settings(), options.mail.profile);
  const auto configured = mail::parse_configured_mail(settings);
  const auto templates = templates::load_templates(settings.send.templates);
  auto draft = example_draft(options.mail, example_created_at, context);
  auto& values = draft.values;
  values.link = link_or_example(configured, context).link(values.action, values.token);
  render(draft, options.mail, templates, static_cast<std::size_t>(settings.send.max_size));
  require_part(draft.content, options);
  const auto to = address_of(values.email, options.part, context);
  context.log().warn("the token is an example and does not verify");
  const auto message = options.part == RenderedPart::message
                           ? build_message(draft.content, configured, *to, context)
                           : std::string();
  if (context.global().output == OutputFormat::json) {
    context.print(render_mail_json(draft, message));
  } else if (options.part == RenderedPart::message) {
    // As it is: its line ends are CRLF, and it has no other control character.
    context.out().write(message);
  } else {
    context.print(shown_part(draft.content, options.part));
  }
  return ExitCode::done;
}

void try_template(const ExampleMail& mail, const templates::TemplateSet& templates, Context& context) {
  auto draft = example_draft(mail, example_created_at, context);
  draft.values.link = "https://app.example/";
  render(draft, mail, templates, static_cast<std::size_t>(context.settings().send.max_size));
}

compose::MailDraft draft_of_example(const std::string& template_name, const std::string& locale,
                                    Moment created_at) {
  compose::MailDraft draft{.content = {.date = created_at},
                           .template_name = template_name,
                           .locale = locale,
                           .purpose = templates::DataFor::preview,
                           .values = {.action = template_name,
                                      .email = "user1@mail.example",
                                      .login = "user1",
                                      .token = std::string(example_token),
                                      .code = "",
                                      .valid_from = created_at,
                                      .expires_at = created_at + example_lifetime}};
  const auto* builtin = templates::find_builtin(template_name, templates::MailPart::text);
  if (builtin == nullptr || builtin->shows_code) draft.values.code = example_code;
  return draft;
}

compose::MailDraft example_draft(const ExampleMail& mail, Moment created_at, Context& context) {
  auto draft = draft_of_example(mail.template_name, mail.locale, created_at);
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
