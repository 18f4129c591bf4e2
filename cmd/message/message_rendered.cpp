// show --rendered: writes the mail as it is made now, and says whether it is the one that was handed over.

#include "cmd/message/message_rendered.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/send/send_setup.hpp"
#include "crypto/base64.hpp"
#include "mail/address.hpp"

namespace mailroom::cmd {
namespace {

RenderedMail remade(db::Connection& connection, const compose::MailProfiles& profiles, const crypto::Key& key,
                    compose::AttachmentReader& reader, compose::SentMail sent) {
  RenderedMail mail{.sent = std::move(sent)};
  auto made = compose::make_again(connection, profiles, key, reader, mail.sent);
  if (const auto* refusal = std::get_if<mail::Refusal>(&made)) {
    mail.problem = refusal->reason;
    return mail;
  }
  mail.made = std::get<compose::RemadeMail>(std::move(made));
  if (!mail.sent.content_hash.empty() && !mail.is_same())
    mail.difference = compose::reason_of_difference(mail.sent, *mail.made, key.fingerprint());
  return mail;
}

bool is_to(const compose::SentMail& sent, const std::string& address) {
  return lower_case(sent.address) == lower_case(mail::address_of_mailbox(address));
}

}  // namespace

nlohmann::ordered_json rendered_json(const RenderedMail& mail) {
  using Json = nlohmann::ordered_json;
  Json object{{"queue", mail.sent.queue},
              {"token", mail.sent.token},
              {"recipient", text_or_null<Json>(mail.sent.address)},
              {"content_hash", text_or_null<Json>(mail.sent.content_hash)},
              {"templates", text_or_null<Json>(mail.sent.templates)},
              {"same", nullptr},
              {"problem", text_or_null<Json>(mail.problem)},
              {"difference", text_or_null<Json>(mail.difference)},
              {"hash_now", nullptr},
              {"templates_now", nullptr},
              {"hides_token", nullptr},
              {"mail", nullptr}};
  if (!mail.made) return object;
  if (!mail.sent.content_hash.empty()) object["same"] = mail.is_same();
  object["hash_now"] = mail.made->hash;
  object["templates_now"] = text_or_null<Json>(mail.made->templates);
  object["hides_token"] = mail.made->has_token;
  object["mail"] = crypto::base64(
      {reinterpret_cast<const std::uint8_t*>(mail.made->bytes.data()), mail.made->bytes.size()});
  return object;
}

std::vector<compose::SentMail> sent_mails_to(db::Connection& connection, std::int64_t message,
                                             const std::string& address) {
  auto sent = compose::read_sent_mails(connection, message);
  if (!address.empty()) std::erase_if(sent, [&](const auto& each) { return !is_to(each, address); });
  return sent;
}

std::vector<RenderedMail> render_sent_mails(Context& context, db::Connection& connection,
                                            std::int64_t message, const std::string& address) {
  auto sent = sent_mails_to(connection, message, address);
  std::vector<RenderedMail> mails;
  if (sent.empty()) return mails;
  const auto profiles = configured_profiles(context.settings());
  const auto key = signing::load_current_key(context.settings());
  compose::AttachmentReader reader([&] { return context.connect_to_schema("message"); }, nullptr);
  for (auto& each : sent)
    mails.push_back(remade(connection, *profiles, key, reader, std::move(each)));
  return mails;
}

std::string verdict_on(const RenderedMail& mail) {
  if (!mail.made) return fmt::format("the mail cannot be made again: {}", mail.problem);
  if (mail.sent.content_hash.empty())
    return "no hash of the mail is on record (send.evidence): whether it is the same is not known";
  if (mail.is_same()) return "the mail is the one that was handed over, byte for byte";
  return fmt::format("the mail differs from the one that was handed over: {}", mail.difference);
}

ExitCode message_show_rendered(const MessageOptions& options, Context& context, db::Connection& connection,
                               std::int64_t message) {
  const auto mails = render_sent_mails(context, connection, message, options.recipient);
  if (mails.empty()) {
    throw Error(
        ExitCode::unusable,
        fmt::format("no mail of message {}{} was handed over", message,
                    options.recipient.empty() ? "" : " to " + shown_text(options.recipient)),
        "mailroom template render shows what a template makes, and mailroom send --dry-run what would leave now");
  }
  if (context.global().output == OutputFormat::json) {
    for (const auto& mail : mails)
      context.print(json_text(rendered_json(mail)) + "\n");
    return ExitCode::done;
  }
  if (mails.size() > 1)
    throw Error(
        ExitCode::usage,
        fmt::format("message {} has {}", message, counted(static_cast<std::int64_t>(mails.size()), "mail")),
        "--recipient ADDRESS names one of them; -o json shows all");
  const auto& mail = mails.front();
  if (!mail.made) throw Error(ExitCode::unusable, verdict_on(mail));
  context.out().write(mail.made->bytes);
  if (mail.is_same()) {
    context.log().info(verdict_on(mail), {{"sha256", mail.made->hash}});
  } else {
    context.log().warn(verdict_on(mail),
                       {{"sha256", mail.made->hash}, {"on_record", mail.sent.content_hash}});
  }
  if (mail.made->has_token)
    context.log().info("its token and code are not shown: who has them acts for their owner");
  return mail.is_same() || mail.sent.content_hash.empty() ? ExitCode::done : ExitCode::failed;
}

}  // namespace mailroom::cmd
