// Tells the refusal of one recipient from a refusal that meets every mail.
#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// Whom a relay's 4xx or 5xx to RCPT, DATA or the end of a message is about.
enum class RefusalSubject {
  recipient,  ///< its address or mailbox
  everyone,   ///< the login, the name in EHLO, the sender or a quota: the same for each mail
  unclear,    ///< this mail, its recipient or everyone: only further mails show it
};

/// Reads it from the code, the enhanced code and the words of the reply. `recipient` is the address that the
/// reply may repeat: no recipient may choose the words that are judged.
RefusalSubject subject_of_refusal(int code, std::string_view text, std::string_view recipient);

/// What equal refusals of several mails have in common: code and words, without addresses and numbers.
std::string refusal_key(int code, std::string_view text, std::string_view recipient);

/// Tells a relay that refuses every mail from one that refuses some: counts equal refusals. Pure.
class RefusalRun {
 public:
  /// From the third equal refusal on, without an accepted mail in between, the relay is what is wrong.
  static constexpr int limit = 3;

  void accepted() { count_ = 0; }
  /// A permanent refusal whose subject is unclear. True if the relay refuses one mail after another, or if
  /// this mail was the probe of an unavailable relay: then it is not final.
  bool is_about_relay(const std::string& key, bool is_probe);

 private:
  std::string key_;
  int count_ = 0;
};

}  // namespace mailroom
