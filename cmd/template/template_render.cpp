// Stands in for a link or sender that is not configured, and says so on stderr.

#include "cmd/template/template_render.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "accounts/account_lookup.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "mail/configured_mail.hpp"
#include "mail/message.hpp"
#include "mail/template_set.hpp"

namespace mailroom {
namespace {

constexpr auto example_link = "https://app.example/{action}?token={token}";
constexpr auto example_sender = "Example <no-reply@app.example>";

/// The configured link, or an example of one, which is said on stderr.
LinkTemplate link_or_example(const ConfiguredMail& configured, Context& context) {
  if (configured.link) return *configured.link;
  context.log().warn("send.link is not configured; the link is an example");
  return std::get<LinkTemplate>(LinkTemplate::parse(example_link));
}

Mailbox sender_or_example(const ConfiguredMail& configured, Context& context) {
  if (configured.from) return *configured.from;
  context.log().warn("send.from is not configured; the sender is an example");
  return std::get<Mailbox>(parse_mailbox(example_sender));
}

/// The recipient's address, or nullopt for one that cannot be mailed; says on stderr what stands in the way.
/// Throws Error(unusable) for the latter if the whole message is wanted.
std::optional<Address> address_of(const std::string& email, RenderedPart part, Context& context) {
  auto address = parse_address(email);
  if (const auto* refusal = std::get_if<Refusal>(&address)) {
    const auto problem = fmt::format("{} cannot be mailed: {}", shown_text(email), refusal->reason);
    if (part == RenderedPart::message)
      throw Error(ExitCode::unusable, problem, "render without --message to see the rest of the mail");
    context.log().warn(problem);
    return std::nullopt;
  }
  if (needs_smtputf8(std::get<Address>(address)))
    context.log().warn("the address needs a relay that offers SMTPUTF8");
  return std::get<Address>(std::move(address));
}

std::string build_message(const RenderedMail& mail, const ConfiguredMail& configured, const Address& to,
                          Context& context) {
  const MessageBuilder builder(sender_or_example(configured, context), configured.reply_to,
                               configured.headers);
  MailContent content{.date = example_created_at,
                      .queue = context.settings().collect.queues.front(),
                      .key = "0000000000000000",
                      .token = 0,
                      .to = to,
                      .subject = mail.subject,
                      .text = mail.text,
                      .html = std::nullopt};
  if (mail.html) content.html = *mail.html;
  auto message = builder.build(content);
  if (const auto* refusal = std::get_if<Refusal>(&message)) {
    throw Error(ExitCode::unusable, "the mail cannot be built: " + refusal->reason,
                "the value is the email or login of the account");
  }
  return std::get<std::string>(std::move(message));
}

std::string with_line_end(const std::string& text) {
  return text.ends_with('\n') ? text : text + "\n";
}

std::string shown_part(const RenderedMail& mail, RenderedPart part) {
  if (part == RenderedPart::subject) return mail.subject + "\n";
  if (part == RenderedPart::text) return with_line_end(mail.text);
  if (part == RenderedPart::html) return with_line_end(*mail.html);
  return fmt::format("Subject: {}\n\n{}", mail.subject, with_line_end(mail.text));
}

void require_html(const RenderedMail& mail, const RenderOptions& options) {
  if (mail.html || options.part != RenderedPart::html) return;
  const auto name = mail_action_name(options.action);
  throw Error(
      ExitCode::configuration, fmt::format("the mail for {} has no HTML", name),
      fmt::format("add {}.html to send.templates; a set with {}.txt alone sends text only", name, name));
}

/// `message` is empty unless it was asked for.
std::string render_mail_json(const RenderedMail& mail, const TemplateValues& values,
                             const std::string& message) {
  nlohmann::ordered_json object{{"action", mail_action_name(values.action)},
                                {"email", values.email},
                                {"subject", mail.subject},
                                {"text", mail.text},
                                {"html", nullptr}};
  if (mail.html) object["html"] = *mail.html;
  if (!message.empty()) object["message"] = message;
  return json_text(object) + "\n";
}

// An example must not be mistaken for a token of an account.
constexpr auto example_token =
    "this-token-is-an-example-and-does-not-verify-this-token-is-an-example-and-does-not-ver";
constexpr auto example_code = "12345";
constexpr std::chrono::minutes example_lifetime{15};

}  // namespace

ExitCode run_template_render(const RenderOptions& options, Context& context) {
  const auto& settings = context.settings();
  const auto configured = parse_configured_mail(settings);
  const auto templates = load_templates(settings.send.templates);
  auto values = example_mail(options.action, options.account, example_created_at, context);
  values.link = link_or_example(configured, context).link(values.action, values.token);
  const auto mail = templates.render(values);
  require_html(mail, options);
  const auto to = address_of(values.email, options.part, context);
  context.log().warn("the token is an example and does not verify");
  const auto message =
      options.part == RenderedPart::message ? build_message(mail, configured, *to, context) : std::string();
  if (context.global().output == OutputFormat::json) {
    context.print(render_mail_json(mail, values, message));
  } else if (options.part == RenderedPart::message) {
    // As it is: its line ends are CRLF, and it has no other control character.
    context.out().write(message);
  } else {
    context.print(shown_part(mail, options.part));
  }
  return ExitCode::done;
}

TemplateValues example_mail(MailAction action, const std::optional<std::string>& account, Moment created_at,
                            Context& context) {
  TemplateValues values{.action = action,
                        .email = "user1@mail.example",
                        .login = "user1",
                        .token = example_token,
                        .code = example_code,
                        .valid_from = created_at,
                        .expires_at = created_at + example_lifetime};
  if (account) {
    const auto connection = context.connect_to_schema("template");
    auto found = find_accounts(*connection, {*account}).front();
    values.email = std::move(found.email);
    values.login = std::move(found.login);
  }
  return values;
}

}  // namespace mailroom
