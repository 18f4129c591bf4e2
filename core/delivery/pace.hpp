// Finds the rate that a relay or server allows, from what it takes and what it refuses.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>

#include "base/clock.hpp"
#include "config/rate.hpp"

namespace mailroom::delivery {

/// Counts what came in the last moments, in a fixed number of buckets.
class RecentCount {
 public:
  explicit RecentCount(std::chrono::nanoseconds width) : width_(width) {}

  void add(TimePoint now);
  /// How many came within the last `buckets` widths, at most 64.
  int sum(int buckets, TimePoint now) const;

 private:
  std::int64_t index(TimePoint now) const { return now.time_since_epoch() / width_; }

  std::chrono::nanoseconds width_;
  std::array<int, 64> counts_{};
  std::int64_t last_ = 0;  ///< the newest bucket
};

/// The rate at which a receiver, such as a relay, takes mails, learnt from what it took and what it refused
/// as too much. Without a refusal there is no limit.
///
/// The first limit is what the receiver took in the second before. A refusal halves the limit, but not
/// below nine tenths of what was taken in the last second, ten seconds or minute; refusals of mails that left
/// before the last cut say nothing new. The limit grows while mails are taken, slowly at first. Where nothing
/// was taken between two cuts, the receiver had closed altogether, as at the end of a quota of a minute:
/// the next mail that it takes doubles the limit, until it is what it was. Pure: takes times, returns times.
class Pace {
 public:
  static constexpr double lowest = 0.1;  ///< mails per second
  /// A sender takes no more mails at a time than the limit lets leave within this.
  static constexpr std::chrono::seconds batch_time{5};
  /// How long a mail may wait at a sender.
  static constexpr std::chrono::seconds longest_wait{10};

  /// `most`: a limit of its own, which no answer changes.
  explicit Pace(std::uint64_t seed, std::optional<config::Rate> most = std::nullopt)
      : random_(static_cast<std::minstd_rand::result_type>(seed)) {
    if (most) most_ = 1 / most->gap().count();
  }

  /// The next mail may leave then; a time in the past means now.
  TimePoint next() const { return next_; }
  /// A mail leaves.
  void left(TimePoint now);
  /// A mail that left at `left` was taken.
  void took(TimePoint left, TimePoint now);
  /// A mail that left at `left` was refused as too much. True if that cuts the limit.
  bool refused(TimePoint left, TimePoint now);

  /// Ends the limit.
  void forget();

  /// In mails per second; nullopt without a limit.
  std::optional<double> limit() const {
    return limit_ && most_ ? std::min(*limit_, *most_) : limit_ ? limit_ : most_;
  }
  /// The time between two mails; 0 without a limit.
  std::chrono::nanoseconds gap() const;
  /// How many mails a sender takes at a time, at least 1 and at most `most`.
  int room(int most) const;
  /// True if the receiver has refused everything for so long that it is not only a limit of a minute.
  bool is_shut(TimePoint now) const {
    return refused_in_row_ > 0 && now - refused_since_ > std::chrono::seconds(75);
  }
  /// When a mail was taken last.
  TimePoint last_taken() const { return last_taken_; }

 private:
  bool is_closed(TimePoint now) const;
  double taken_rate(TimePoint now) const;
  void set_base(double limit, TimePoint now);

  RecentCount moments_{std::chrono::milliseconds(50)};
  RecentCount seconds_{std::chrono::seconds(1)};
  std::optional<double> limit_;  ///< as learnt
  std::optional<double> most_{};
  double peak_ = 0;           ///< the most that was taken in a second before a cut
  double refused_share_ = 0;  ///< of the last answers
  double base_ = 0;           ///< from which the limit grows
  TimePoint grows_since_{};
  TimePoint cut_at_{};
  TimePoint raised_at_{};
  bool took_since_cut_ = false;
  int refused_in_row_ = 0;            ///< without those that left before a cut
  TimePoint refused_since_{};         ///< the first of them
  std::optional<double> reopens_to_;  ///< the limit before the receiver closed
  TimePoint last_taken_{};
  TimePoint next_{};
  std::minstd_rand random_;
};

/// When messages come back from the queue that could not leave: one after the other, so that claims have room
/// for others. Those that would wait longer than four minutes begin with the
/// shortest wait again. Pure: takes times.
class ReturnTimes {
 public:
  static constexpr std::chrono::seconds longest{240};

  /// The wait of the next one, which is at least `least`, and `gap` after the one before.
  Milliseconds next(TimePoint now, std::chrono::nanoseconds least, std::chrono::nanoseconds gap);

 private:
  TimePoint last_{};
};

/// How often a mail was refused as too much. A relay may say so of one recipient only: then it says so again
/// whatever the rate is, while it takes others.
class Refusals {
 public:
  static constexpr int most = 6;

  void add(const Pace& pace, TimePoint now) {
    ++count_;
    if (last_ == TimePoint{} || pace.last_taken() > last_) ++beside_others_;
    last_ = now;
  }
  /// The mail is tried another time, later.
  void begin_again() { count_ = 0; }
  bool are_none() const { return beside_others_ == 0; }
  bool are_many() const { return count_ >= most; }
  /// True if another one lowers the rate: it is the first or the second, or the rate is not low yet.
  bool is_news(const Pace& pace) const {
    return beside_others_ < 2 || (beside_others_ < 3 && pace.limit().value_or(2) > 1);
  }
  /// True if the receiver took others between one and the next, so that the refusals are about this mail.
  bool are_about_mail() const { return beside_others_ >= most; }

 private:
  int count_ = 0;
  int beside_others_ = 0;
  TimePoint last_{};
};

}  // namespace mailroom::delivery
