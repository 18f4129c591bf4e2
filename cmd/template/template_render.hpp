// Template render: a mail as its reader gets it, without sending it, and the values that stand in for those
// of a real token.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/syntax/command_syntax.hpp"
#include "cmd/terminal/context.hpp"
#include "compose/mail_writer.hpp"
#include "mail/configured_mail.hpp"
#include "templates/template_files.hpp"
#include "templates/template_set.hpp"

namespace mailroom::cmd {

/// 2030-01-01 11:45 UTC, so that what is shown is the same each time. A mail that is really sent needs the
/// present.
constexpr Moment example_created_at{std::chrono::seconds(1'893'498'300)};

/// A mail for trial, as the command line describes it.
struct ExampleMail {
  std::string template_name{templates::default_template};
  std::string locale{};
  std::string profile{};  ///< empty: `default`
  std::optional<std::string> data_file{};
  bool has_topic = false;                ///< its reader can unsubscribe
  std::optional<std::string> account{};  ///< whose email and login it names; nullopt for an example
};

/// Adds --account, --data and --locale. The help of each begins with `prefix`.
std::vector<Option> add_example_options(CommandSyntax& syntax, ExampleMail& mail, const std::string& prefix);

/// Adds --profile, likewise.
Option add_profile_option(CommandSyntax& syntax, ExampleMail& mail, const std::string& prefix);

/// The draft of such a mail, to nobody. It names an account that is looked up in the database by id, email or
/// login, or an example; the token is an example that does not verify, and it is valid for 15 minutes from
/// `created_at`. Throws Error(configuration) for data that cannot be read, Error(unusable) if no account has
/// the name, Error(usage) if several have it, and what Context::connect_to_schema() throws.
compose::MailDraft example_draft(const ExampleMail& mail, Moment created_at, Context& context);

/// The same for an example account, without data.
compose::MailDraft draft_of_example(const std::string& template_name, const std::string& locale,
                                    Moment created_at);

/// Stands in for a token: it must not be mistaken for one of an account.
constexpr std::string_view example_token =
    "this-token-is-an-example-and-does-not-verify-this-token-is-an-example-and-does-not-ver";

/// Stand in for what is not configured.
mail::LinkTemplate example_link_template();
mail::Mailbox example_mailbox();
/// The configured link, or an example of one, which is said on stderr; the same of the sender.
mail::LinkTemplate link_or_example(const mail::ConfiguredMail& configured, Context& context);
mail::Mailbox sender_or_example(const mail::ConfiguredMail& configured, Context& context);

/// Throws Error(configuration): why the mail cannot be made, and what may help.
[[noreturn]] void refuse_example(const ExampleMail& mail, const mail::Refusal& refusal,
                                 const std::vector<std::string>& template_names);

/// What `template render` shows.
enum class RenderedPart { subject_and_text, subject, text, html, message };

struct RenderOptions {
  ExampleMail mail;
  RenderedPart part = RenderedPart::subject_and_text;
};

/// Renders one mail with an example token, for an example account or one of the database.
ExitCode run_template_render(const RenderOptions& options, Context& context);

/// Makes the mail of a template, and returns what is probably wrong with it. Throws as run_template_render()
/// if it cannot be made.
std::vector<std::string> try_template(const ExampleMail& mail,
                                      std::shared_ptr<const templates::TemplateSet> templates,
                                      const config::Settings& settings, Context& context);

}  // namespace mailroom::cmd
