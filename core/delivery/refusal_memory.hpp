// Compares a refusal with what other messages get, and counts those of one recipient, which say more than its
// words.
#pragma once

#include <map>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "delivery/pace.hpp"

namespace mailroom::delivery {

/// The refusals of mails that were given back, by recipient. Keeps a few hundred.
class RefusedRecipients {
 public:
  /// What is known of the recipient of a mail that comes again.
  Refusals take(const std::string& recipient) {
    const auto known = refused_.find(recipient);
    if (known == refused_.end()) return {};
    auto refusals = known->second;
    refused_.erase(known);
    refusals.begin_again();
    return refusals;
  }
  void keep(const std::string& recipient, const Refusals& refusals) {
    constexpr std::size_t most = 256;
    if (recipient.empty() || refusals.are_none()) return;
    if (refused_.size() >= most) refused_.clear();
    refused_[recipient] = refusals;
  }

 private:
  std::map<std::string, Refusals> refused_;
};

/// Whom a relay's 4xx or 5xx to RCPT, DATA or the end of a message is about.
enum class RefusalSubject {
  recipient,  ///< its address or mailbox
  everyone,   ///< the login, the name in EHLO, the sender or a quota: the same for each mail
  unclear,    ///< this mail, its recipient or everyone: only further mails show it
};

/// A mail that was refused, and with what.
struct RefusedMail {
  std::string key{};  ///< equal for refusals that have one cause
  RefusalSubject by_words = RefusalSubject::unclear;
  bool is_of_sender = false;  ///< the key is that of its sender alone
  bool was_refused = false;   ///< so was an earlier attempt at it
  bool is_probe = false;      ///< of an unavailable relay, or it came after that
  std::string why{};          ///< code and words of the relay, for people
};

/// Tells a relay that refuses every mail from one that refuses some, whatever the words: remembers which
/// kinds of refusals came while other mails were taken. Pure: takes times.
class RefusalMemory {
 public:
  /// From the third equal refusal on, without an accepted mail in between, the fault is the relay's.
  static constexpr int equal_run = 3;
  /// So it is from this one on if they differ.
  static constexpr int mixed_run = 6;
  /// A kind whose words are about everyone, and that met some mails only, does so up to this one.
  static constexpr int longest_run = 30;
  /// How long it is remembered that a kind of refusal meets some mails only.
  static constexpr std::chrono::minutes kept{15};

  /// A mail was taken, in an attempt that began at `began`. Refusals before it that
  /// seemed to be about every mail were about the mails that were refused. Forgets `own_key`, that of its
  /// sender.
  void accepted(const std::string& own_key, WallTime began, WallTime now);
  /// A mail was refused. Returns `everyone` if the relay takes no mail: the words say so, or it refuses one
  /// mail after another, or the mail was the probe of an unavailable relay. Returns `recipient` if other
  /// mails are taken meanwhile.
  RefusalSubject refused(const RefusedMail& mail, WallTime now);
  /// A mail was refused by words about a limit. True if they meet some mails only, so that no limit is meant.
  bool limited(const std::string& key, WallTime now);
  /// Such a mail was refused again and again while others were taken.
  void meets_some(const std::string& key, WallTime now, const std::string& why = {});

  /// What is remembered of refusals that are no limits, for other processes: an array.
  nlohmann::json json(WallTime now) const;
  /// Replaces that by what others know.
  void take(const nlohmann::json& kinds);

 private:
  struct Kind {
    int in_row = 0;  ///< without an accepted mail in between
    bool is_limit = false;
    bool is_unclear = false;  ///< has no words about everyone
    WallTime since{};
    WallTime last{};
    WallTime some_until{};  ///< until then it meets some mails only
    std::string why{};
  };

  Kind& kind(const std::string& key);
  /// Counts one more; true if other mails are taken meanwhile, and the row is shorter than `longest`.
  bool meets_some_again(Kind& kind, int longest, WallTime now);

  /// Of all kinds without words about everyone.
  int unclear_in_row() const;

  std::map<std::string, Kind> kinds_;
};

}  // namespace mailroom::delivery
