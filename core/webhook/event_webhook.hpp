// What is answered to a provider that posts an event, and how the event gets from the thread that received it
// to the one that has the database.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/threads.hpp"
#include "bounce/provider.hpp"
#include "process/http_listener.hpp"
#include "suppression/preferences.hpp"
#include "webhook/mailgun_verifier.hpp"
#include "webhook/second_limit.hpp"
#include "webhook/secret_verifier.hpp"
#include "webhook/sendgrid_verifier.hpp"
#include "webhook/sns_verifier.hpp"
#include "webhook/svix_verifier.hpp"

namespace mailroom::webhook {

/// What became of the events of a request.
enum class EventReceipt {
  pending,
  recorded,
  not_yet,  ///< a mail of theirs is not on record, and may be soon
  failed    ///< none is recorded
};

/// The events of a request, on their way to the database: all of them are recorded, or none. Or what a reader
/// asks for by a link of his mail.
struct Handover {
  std::vector<bounce::ReadEvent> events{};
  EventReceipt receipt = EventReceipt::pending;
  std::optional<suppression::PreferenceChange> change{};
  std::vector<suppression::TopicChoice> choices{};  ///< after the change
};

/// Events that wait to be recorded. For several threads.
class EventIntake {
 public:
  static constexpr std::size_t most_waiting = 64;

  /// Waits until the events are recorded, `patience` at most. Never pending.
  EventReceipt submit(std::vector<bounce::ReadEvent> events, std::chrono::milliseconds patience) {
    return hand_over(std::make_shared<Handover>(Handover{.events = std::move(events)}), patience);
  }
  /// The same for a change: what the reader may choose after it; nullopt if the database is not to be had.
  std::optional<std::vector<suppression::TopicChoice>> change(suppression::PreferenceChange change,
                                                              std::chrono::milliseconds patience);
  /// What waits, without waiting for more. Each is to be settled.
  std::vector<std::shared_ptr<Handover>> take();
  void settle(Handover& handover, EventReceipt receipt);
  /// Fails what waits and what comes.
  void close();
  /// Readable while events wait.
  int fd() const { return news_.fd(); }

 private:
  EventReceipt hand_over(const std::shared_ptr<Handover>& handover, std::chrono::milliseconds patience);

  std::mutex mutex_;
  std::condition_variable settled_;
  std::deque<std::shared_ptr<Handover>> waiting_;
  EventFd news_;
  bool is_closed_ = false;
};

/// What is news since it was last asked for.
struct WebhookNews {
  std::int64_t refused = 0;                 ///< requests
  std::string reason{};                     ///< of the last one
  std::vector<std::string> confirmed{};     ///< topics whose subscription was confirmed
  std::vector<std::string> unsubscribed{};  ///< topics that post no more
  std::set<std::string> unknown{};          ///< kinds of events that no rule knows
};

/// Takes events over HTTP: the signature is checked over the bytes that came, then they are read, then
/// recorded, then 200 is answered. For several threads.
class EventWebhook {
 public:
  static constexpr std::size_t longest_body = std::size_t{1} << 20;
  /// More requests in a second are told to come again.
  static constexpr int most_a_second = 500;

  /// Records events, and returns when that is committed or has failed.
  using Submit = std::function<EventReceipt(std::vector<bounce::ReadEvent>)>;

  /// What checks who posts.
  struct Verifiers {
    SvixVerifier& svix;
    SnsVerifier& sns;
    SnsWeb& web;  ///< by which subscriptions are confirmed
    MailgunVerifier& mailgun;
    const SendGridVerifier& sendgrid;
    const SecretVerifier& secrets;
  };

  EventWebhook(const Verifiers& verifiers, Submit submit)
      : verifiers_(verifiers), submit_(std::move(submit)) {}

  process::HttpPage answer(const process::HttpCall& call);
  WebhookNews take_news();

 private:
  process::HttpPage answer_post(const process::HttpCall& call);
  process::HttpPage answer_resend(const process::HttpCall& call);
  process::HttpPage answer_sns(const process::HttpCall& call);
  process::HttpPage confirm(const SnsMessage& message);
  process::HttpPage answer_signed(const process::HttpCall& call, const char* provider,
                                  const std::string& problem);
  process::HttpPage refuse(const std::string& reason);
  process::HttpPage refuse_body(const std::string& problem);
  process::HttpPage record(bounce::ReadEvents read);
  bool is_too_many();

  Verifiers verifiers_;
  Submit submit_;
  std::mutex mutex_;
  WebhookNews news_;
  SecondLimit limit_{most_a_second};
};

}  // namespace mailroom::webhook
