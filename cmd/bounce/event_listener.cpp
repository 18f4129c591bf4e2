// Events that providers post. The threads of the clients check and read events; this one records them, all
// that have come in one transaction.

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "cmd/bounce/event_sources.hpp"
#include "process/environment.hpp"
#include "signing/configured_keys.hpp"
#include "webhook/event_webhook.hpp"
#include "webhook/subscription_door.hpp"

namespace mailroom::cmd {
namespace {

constexpr process::ListenWords event_words{
    .subject = "events", .owner = "reader", .named_by = "--listen names", .port = "8088"};
constexpr std::chrono::seconds client_patience{5};  ///< of a client, for the database
constexpr std::chrono::seconds tell_every{60};      ///< what was read and refused

config::ListenAddress event_address_of(const std::string& text) {
  const auto address = config::parse_listen_address(text);
  if (address && address->path.size() <= config::longest_socket_path) return *address;
  throw Error(
      ExitCode::usage, fmt::format("--listen '{}' is no address to listen at", shown_text(text)),
      "give an IP address of this host and a port, such as 127.0.0.1:8088, or the path of a unix socket");
}

/// The files of a provider's secrets or keys.
std::vector<std::string> files_of(const config::Settings& settings, const char* provider) {
  const auto found = settings.bounce.secret_files.find(provider);
  return found == settings.bounce.secret_files.end() ? std::vector<std::string>() : found->second;
}

/// True if mails have links that lead here.
bool has_subscriptions(const config::Settings& settings) {
  return !settings.send.unsubscribe_link.empty() ||
         std::ranges::any_of(settings.profiles,
                             [](const auto& profile) { return !profile.send.unsubscribe_link.empty(); });
}

std::unique_ptr<webhook::SubscriptionDoor> subscription_door(const config::Settings& settings,
                                                             webhook::EventIntake& intake) {
  if (!has_subscriptions(settings)) return nullptr;
  return std::make_unique<webhook::SubscriptionDoor>(
      signing::load_key_ring(settings), [&intake](suppression::PreferenceChange change) {
        return intake.change(std::move(change), client_patience);
      });
}

/// Without one nobody could post.
http::WebhookSigner resend_secrets(const config::Settings& settings) {
  const auto& bounce = settings.bounce;
  const bool has_any =
      std::ranges::any_of(bounce.secret_files, [](const auto& each) { return !each.second.empty(); });
  if (bounce.resend_secret_files.empty() && bounce.sns_topics.empty() && !has_any &&
      !has_subscriptions(settings)) {
    throw Error(
        ExitCode::configuration, "no provider may post events",
        "name a file with its secret, such as bounce.postmark_secret_files, or the topics of Amazon SNS in "
        "bounce.sns_topics: docs/bounces.md says which; or set send.unsubscribe_link");
  }
  return {settings.bounce.resend_secret_files, settings.signing.allow_readable_key,
          "bounce.resend_secret_files"};
}

webhook::MailgunVerifier mailgun_keys(const config::Settings& settings) {
  constexpr auto name = "mailgun";
  return webhook::MailgunVerifier(
      webhook::read_secrets(name, files_of(settings, name), settings.signing.allow_readable_key));
}

/// They are public, and nobody else may write them.
webhook::SendGridVerifier sendgrid_keys(const config::Settings& settings) {
  constexpr auto key = "bounce.sendgrid_key_files";
  std::vector<std::string> keys;
  for (const auto& path : files_of(settings, "sendgrid"))
    keys.emplace_back(SecretFile(path, {"verification key", key, "", ""}, true).text());
  return {keys, key};
}

webhook::SecretVerifier provider_secrets(const config::Settings& settings) {
  std::map<std::string, std::vector<std::string>, std::less<>> secrets;
  for (const auto& [name, files] : settings.bounce.secret_files) {
    if (name != "mailgun" && name != "sendgrid")
      secrets[name] = webhook::read_secrets(name, files, settings.signing.allow_readable_key);
  }
  return webhook::SecretVerifier(secrets);
}

/// Listens from its construction on; what comes while there is no database is told to come again.
class EventListener final : public ProviderEvents {
 public:
  /// Throws Error for an address that cannot be listened at, and without a secret.
  EventListener(const std::string& address, Context& context);
  ~EventListener() override;
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;

  ExitCode read(BounceReader& reader, process::StopSignal& stop) override;

 private:
  process::HttpPage answer(const process::HttpCall& call) noexcept;
  void record_waiting(BounceReader& reader);
  void make_changes(const std::vector<std::shared_ptr<webhook::Handover>>& taken, BounceReader& reader);
  void tell_news(BounceReader& reader);

  Context& context_;
  webhook::EventIntake intake_;
  webhook::SvixVerifier svix_;
  webhook::CurlSnsWeb web_;
  webhook::SnsVerifier sns_;
  webhook::MailgunVerifier mailgun_;
  webhook::SendGridVerifier sendgrid_;
  webhook::SecretVerifier secrets_;
  webhook::EventWebhook webhook_;
  std::unique_ptr<webhook::SubscriptionDoor> door_;  ///< null: no mail has a link to it
  process::HttpListener listener_;
};

EventListener::EventListener(const std::string& address, Context& context)
    : context_(context),
      svix_(resend_secrets(context.settings())),
      sns_(context.settings().bounce.sns_topics, web_),
      mailgun_(mailgun_keys(context.settings())),
      sendgrid_(sendgrid_keys(context.settings())),
      secrets_(provider_secrets(context.settings())),
      webhook_({.svix = svix_,
                .sns = sns_,
                .web = web_,
                .mailgun = mailgun_,
                .sendgrid = sendgrid_,
                .secrets = secrets_},
               [this](std::vector<bounce::ReadEvent> events) {
                 return intake_.submit(std::move(events), client_patience);
               }),
      door_(subscription_door(context.settings(), intake_)),
      listener_(event_address_of(address),
                {.words = event_words,
                 .methods = door_ ? "GET, POST" : "POST",
                 .longest_body = webhook::EventWebhook::longest_body},
                [this](const process::HttpCall& call) { return answer(call); }) {
  context_.log().info("listening for events", {{"address", listener_.address().text()}});
}

EventListener::~EventListener() {
  intake_.close();
}

/// A secret of a provider in the path may look like a link. Never throws; the log has no path, which may be a
/// secret or a link.
process::HttpPage EventListener::answer(const process::HttpCall& call) noexcept try {
  const bool is_of_provider = call.method == "POST" && secrets_.sender_of(call) != nullptr;
  auto page = door_ && !is_of_provider ? door_->answer(call) : std::nullopt;
  return page ? std::move(*page) : webhook_.answer(call);
} catch (const std::exception& error) {
  context_.log().error("a request failed", {{"method", call.method}, {"error", error.what()}});
  return {.status = 500, .text = "Please try again.\n"};
}

ExitCode EventListener::read(BounceReader& reader, process::StopSignal& stop) {
  if (door_) door_->know_home(reader.home());
  process::SystemEnvironment environment(stop, -1);
  auto told = environment.now();
  while (!stop.requested()) {
    environment.wait(intake_.fd(), told + tell_every);
    record_waiting(reader);
    if (environment.now() < told + tell_every) continue;
    told = environment.now();
    tell_news(reader);
  }
  tell_news(reader);
  return ExitCode::done;
}

void EventListener::record_waiting(BounceReader& reader) {
  auto taken = intake_.take();
  make_changes(taken, reader);
  std::erase_if(taken, [](const auto& handover) { return handover->change.has_value(); });
  if (taken.empty()) return;
  std::vector<std::vector<suppression::Report>> reports;
  std::vector<suppression::Report> all;
  for (const auto& handover : taken) {
    reports.push_back(reader.judge(handover->events));
    all.insert(all.end(), reports.back().begin(), reports.back().end());
  }
  std::vector<suppression::RecordedBounce> recorded;
  try {
    recorded = reader.record("webhook", all);
  } catch (...) {
    for (const auto& handover : taken)
      intake_.settle(*handover, webhook::EventReceipt::failed);
    throw;
  }
  auto next = recorded.cbegin();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const bool is_early = may_be_matched_later(reports[i], next, wall_now());
    intake_.settle(*taken[i], is_early ? webhook::EventReceipt::not_yet : webhook::EventReceipt::recorded);
  }
}

/// 200 is answered after the commit.
void EventListener::make_changes(const std::vector<std::shared_ptr<webhook::Handover>>& taken,
                                 BounceReader& reader) {
  try {
    for (const auto& handover : taken) {
      if (!handover->change) continue;
      handover->choices = reader.change(*handover->change);
      intake_.settle(*handover, webhook::EventReceipt::recorded);
    }
  } catch (...) {
    for (const auto& handover : taken) {
      if (handover->receipt == webhook::EventReceipt::pending)
        intake_.settle(*handover, webhook::EventReceipt::failed);
    }
    throw;
  }
}

void EventListener::tell_news(BounceReader& reader) {
  reader.tell_count();
  auto& log = context_.log();
  const auto news = webhook_.take_news();
  for (const auto& topic : news.confirmed)
    log.info("confirmed a subscription", {{"topic", shown_text(topic)}});
  for (const auto& topic : news.unsubscribed)
    log.warn("a topic posts no more", {{"topic", shown_text(topic)}});
  for (const auto& kind : news.unknown)
    log.warn("events of a kind that is not known are ignored", {{"kind", shown_text(kind)}});
  if (news.refused > 0) log.warn("refused requests", {{"count", news.refused}, {"reason", news.reason}});
}

}  // namespace

std::unique_ptr<ProviderEvents> listen_for_events(const std::string& address, Context& context) {
  return std::make_unique<EventListener>(address, context);
}

}  // namespace mailroom::cmd
