// Which mails show soonest whether a relay that has refused some refuses all: those that are least like them.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>

#include "base/clock.hpp"

namespace mailroom::delivery {

/// What a refusal may vary with, as far as it is known before a mail leaves.
struct Likeness {
  std::string sender{};  ///< the address of From, in lower case; empty if several mails differ in it
  std::string kind{};    ///< the recipient's domain, and whether there are attachments; likewise

  auto operator<=>(const Likeness&) const = default;
};

/// Remembers the likeness of refused mails, and picks the mails that are tried while their relay is
/// unavailable for a refusal that may be about some: of a sender who was refused the one at each power of
/// two, of others thirty at once before that, counted apart by what they have in common with the refused
/// ones. Pure: takes times.
class ProbeChoice {
 public:
  /// So many mails of each difference are tried at once.
  static constexpr int at_once = 30;
  /// So many mails are looked at; then the relay is left to its breaker.
  static constexpr int longest_search = 20'000;
  /// How long it is remembered what was refused.
  static constexpr std::chrono::minutes kept{15};

  /// `is_of_sender`: the refusal meets all mails of its sender.
  void refused(const Likeness& likeness, bool is_of_sender, WallTime now);
  /// A mail was accepted: what was refused until now was refused for what it is, but for one like this.
  void accepted(const Likeness& likeness);
  /// True if mails like this one were refused, and others accepted since then.
  bool are_others_accepted(const Likeness& likeness, WallTime now) const;

  /// The relay has become unavailable.
  void begin() { looked_at_ = {}; }
  bool is_over() const;
  /// True if such a mail is the next to be tried.
  bool tries(const Likeness& likeness) const;
  /// One was tried, or skipped.
  void looked_at(const Likeness& likeness) { ++looked_at_.at(difference(likeness)); }
  /// How long one that was skipped waits at least.
  Milliseconds shortest_wait(const Likeness& likeness) const;

 private:
  struct Refused {
    bool is_of_sender = false;
    bool are_others_accepted = false;
    WallTime last{};
  };

  /// 0: its sender was refused; else 1, and one more for each of both that is not known from refused ones.
  std::size_t difference(const Likeness& likeness) const;

  std::map<Likeness, Refused> refused_;
  std::array<int, 4> looked_at_{};  ///< by difference
};

}  // namespace mailroom::delivery
