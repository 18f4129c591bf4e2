// What is answered to a link of a mail: to a mail program that unsubscribes its reader by one click (RFC
// 8058), and to people.
//
// A GET changes nothing, since whatever checks mails follows their links. It decides whose link it is by the
// signing keys, and what is changed by the request; the database is another thread's.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "crypto/key_ring.hpp"
#include "mail/subscription_link.hpp"
#include "process/http_listener.hpp"
#include "suppression/preferences.hpp"
#include "webhook/second_limit.hpp"
#include "webhook/subscription_page.hpp"

namespace mailroom::webhook {

/// What a request by a link asks for.
struct SubscriptionRequest {
  SubscriptionView view = SubscriptionView::question;  ///< that answers it
  suppression::PreferenceChange change{};              ///< without a token
};

/// nullopt for a POST that is none of those that mail programs and our pages make.
std::optional<SubscriptionRequest> subscription_request(mail::SubscriptionUse use,
                                                        const process::HttpCall& call);

/// Counts wrong links by client, so that nobody guesses thousands.
class WrongLinks {
 public:
  static constexpr int most = 60;  ///< of a client in a minute

  /// Notes one. True if it is one too many.
  bool are_many(const std::string& client, TimePoint now);

 private:
  std::map<std::string, int> counts_{};
  TimePoint since_{};
};

/// For several threads.
class SubscriptionDoor {
 public:
  static constexpr std::size_t longest_body = 16U << 10U;
  /// More requests in a second by links that are ours are told to come again.
  static constexpr int most_a_second = 500;

  /// Makes a change, and returns the choices after it has committed; nullopt if the database is not to be
  /// had.
  using Submit =
      std::function<std::optional<std::vector<suppression::TopicChoice>>(suppression::PreferenceChange)>;

  SubscriptionDoor(crypto::KeyRing keys, Submit submit)
      : keys_(std::move(keys)), submit_(std::move(submit)) {}

  /// mailroom_home_name(): before it is known, a link is told to come again.
  void know_home(const std::string& home) {
    const std::lock_guard lock(mutex_);
    home_ = home;
  }

  /// nullopt for what may be of a provider.
  std::optional<process::HttpPage> answer(const process::HttpCall& call);

 private:
  process::HttpPage answer_link(std::string_view text, const process::HttpCall& call);
  process::HttpPage answer_own(const mail::SubscriptionLink& link, std::string_view text,
                               const process::HttpCall& call);
  process::HttpPage refuse(const process::HttpCall& call);
  bool is_too_many();
  std::string home() {
    const std::lock_guard lock(mutex_);
    return home_;
  }

  crypto::KeyRing keys_;
  Submit submit_;
  std::mutex mutex_;
  WrongLinks wrong_;
  std::string home_{};
  SecondLimit limit_{most_a_second};
};

}  // namespace mailroom::webhook
