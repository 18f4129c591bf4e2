// Needs no database unless a message is to be shown, and reads that before it serves.

#include "cmd/template/template_serve.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "cmd/template/template_render.hpp"
#include "mail/configured_mail.hpp"
#include "messages/message_record.hpp"
#include "preview/template_preview.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {
namespace {

std::optional<preview::StoredMessage> message_of(const ServeOptions& options, Context& context) {
  if (!options.message) return std::nullopt;
  messages::check_message_name(*options.message);
  const auto connection = context.connect_to_schema("template");
  const auto id = messages::message_named(*connection, *options.message);
  const auto largest = static_cast<std::size_t>(context.settings().send.max_size);
  return preview::StoredMessage(*connection, id, largest);
}

}  // namespace

void tell_of_page(const preview::PreviewServer& server, Context& context) {
  if (context.global().output == OutputFormat::json) {
    context.print(json_text(nlohmann::ordered_json{{"url", server.url()}}) + "\n");
  } else {
    context.print(server.url() + "\n");
  }
  if (server.is_open())
    context.log().warn("other hosts can open the page, if they know its address with the secret");
}

ExitCode run_template_serve(const ServeOptions& options, Context& context) {
  process::StopSignal stop;
  const auto address = preview::preview_address(options.listen);
  auto message = message_of(options, context);
  const auto profile = options.profile.empty() && message ? message->profile() : options.profile;
  const auto settings = config::with_profile(context.settings(), profile);
  const auto configured = mail::parse_configured_mail(settings);
  preview::TemplatePreview preview(
      {.directory = settings.send.templates,
       .from = sender_or_example(configured, context),
       .reply_to = configured.reply_to,
       .headers = configured.headers,
       .link = link_or_example(configured, context),
       .max_size = static_cast<std::size_t>(settings.send.max_size),
       .token = std::string(example_token),
       .draft = [](const std::string& name,
                   const std::string& locale) { return draft_of_example(name, locale, example_created_at); },
       .message = std::move(message)});
  const preview::PreviewServer server(address, preview);
  tell_of_page(server, context);
  while (!stop.requested())
    stop.sleep_for(std::chrono::hours(1));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
