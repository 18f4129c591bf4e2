// Events that providers post. The threads of the clients check and read events; this one records them, all
// that have come in one transaction.

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cmd/bounce/event_sources.hpp"
#include "process/environment.hpp"
#include "webhook/event_webhook.hpp"

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

/// Without either nobody could post.
http::WebhookSigner resend_secrets(const config::Settings& settings) {
  if (settings.bounce.resend_secret_files.empty() && settings.bounce.sns_topics.empty()) {
    throw Error(
        ExitCode::configuration, "no provider may post events",
        "name the secret of Resend's webhook in bounce.resend_secret_files, or the topics of Amazon SNS in "
        "bounce.sns_topics");
  }
  return {settings.bounce.resend_secret_files, settings.signing.allow_readable_key,
          "bounce.resend_secret_files"};
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
  void record_waiting(BounceReader& reader);
  void tell_news(BounceReader& reader);

  Context& context_;
  webhook::EventIntake intake_;
  webhook::SvixVerifier svix_;
  webhook::CurlSnsWeb web_;
  webhook::SnsVerifier sns_;
  webhook::EventWebhook webhook_;
  process::HttpListener listener_;
};

EventListener::EventListener(const std::string& address, Context& context)
    : context_(context),
      svix_(resend_secrets(context.settings())),
      sns_(context.settings().bounce.sns_topics, web_),
      webhook_(
          {.svix = svix_, .sns = sns_, .web = web_},
          [this](suppression::Report report) { return intake_.submit(std::move(report), client_patience); }),
      listener_(
          event_address_of(address),
          {.words = event_words, .methods = "POST", .longest_body = webhook::EventWebhook::longest_body},
          [this](const process::HttpCall& call) { return webhook_.answer(call); }) {
  context_.log().info("listening for events", {{"address", listener_.address().text()}});
}

EventListener::~EventListener() {
  intake_.close();
}

ExitCode EventListener::read(BounceReader& reader, process::StopSignal& stop) {
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
  const auto taken = intake_.take();
  if (taken.empty()) return;
  std::vector<suppression::Report> reports;
  for (const auto& handover : taken)
    reports.push_back(handover->report);
  std::vector<suppression::RecordedBounce> recorded;
  try {
    recorded = reader.record("webhook", reports);
  } catch (...) {
    for (const auto& handover : taken)
      intake_.settle(*handover, webhook::EventReceipt::failed);
    throw;
  }
  auto next = recorded.cbegin();
  for (const auto& handover : taken) {
    const bool is_matched = are_matched(handover->report, next);
    const bool is_early = !is_matched && may_be_matched_later(handover->report, wall_now());
    intake_.settle(*handover, is_early ? webhook::EventReceipt::not_yet : webhook::EventReceipt::recorded);
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
  if (news.refused > 0) log.warn("refused requests", {{"count", news.refused}, {"reason", news.reason}});
}

}  // namespace

std::unique_ptr<ProviderEvents> listen_for_events(const std::string& address, Context& context) {
  return std::make_unique<EventListener>(address, context);
}

}  // namespace mailroom::cmd
