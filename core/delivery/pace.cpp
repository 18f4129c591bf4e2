// How a limit is cut at a refusal, grows between refusals, and ends.

#include "delivery/pace.hpp"

#include <algorithm>

namespace mailroom::delivery {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double cut_share = 0.5;
constexpr double answer_weight = 1.0 / 8;  ///< weight of an answer in the share of refusals
constexpr double kept_share =
    0.9;  ///< of what was taken: the limit of a second that is full refuses the next mail
constexpr double first_rate = 1;   ///< mails per second, if nothing was taken before the first refusal
constexpr double ended_at = 2;     ///< times the peak: the limit has ended
constexpr double high_rate = 100;  ///< mails per second: no lower limit ends
constexpr double no_target = 1e9;
constexpr double probing_rate = 1;  ///< mails per second, to another side that takes nothing
constexpr int refusals_borne = 8;
constexpr std::chrono::seconds one_second{1};

/// How much a limit has grown in this time without a refusal: a tenth in 3 s, a half in 9 s, twice in 14 s.
double growth(std::chrono::nanoseconds time) {
  const double seconds = Seconds(time).count();
  return 1 + 0.03 * seconds + 0.003 * seconds * seconds;
}

}  // namespace

void RecentCount::add(TimePoint now) {
  const auto size = static_cast<std::int64_t>(counts_.size());
  const auto bucket = std::max(index(now), last_);
  for (auto empty = std::max(last_ + 1, bucket - size + 1); empty <= bucket; ++empty)
    counts_.at(static_cast<std::size_t>(empty % size)) = 0;
  last_ = bucket;
  ++counts_.at(static_cast<std::size_t>(bucket % size));
}

int RecentCount::sum(int buckets, TimePoint now) const {
  const auto size = static_cast<std::int64_t>(counts_.size());
  const auto from = std::max(index(now) - buckets + 1, last_ - size + 1);
  int count = 0;
  for (auto bucket = std::max<std::int64_t>(from, 0); bucket <= last_; ++bucket)
    count += counts_.at(static_cast<std::size_t>(bucket % size));
  return count;
}

std::chrono::nanoseconds Pace::gap() const {
  const auto rate = limit();
  return rate ? std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(1 / *rate))
              : std::chrono::nanoseconds(0);
}

int Pace::room(int most) const {
  const auto rate = limit();
  if (!rate) return most;
  return static_cast<int>(std::clamp<double>(*rate * Seconds(batch_time).count(), 1, most));
}

void Pace::left(TimePoint now) {
  if (limit()) next_ = std::max(next_, now) + gap();
}

void Pace::took(TimePoint left, TimePoint now) {
  moments_.add(now);
  seconds_.add(now);
  last_taken_ = now;
  refused_in_row_ = 0;
  refused_share_ -= answer_weight * refused_share_;
  if (!limit_ || left < cut_at_) return;
  took_since_cut_ = true;
  if (!reopens_to_) {
    limit_ = std::max(*limit_, base_ * growth(now - grows_since_));
  } else if (left >= raised_at_) {
    raised_at_ = now;
    const double limit = std::min(2 * *limit_, *reopens_to_);
    if (limit == *reopens_to_) reopens_to_.reset();
    set_base(limit, now);
    next_ = std::min(next_, now + gap());
  }
  if (*limit_ > std::max(ended_at * peak_, high_rate)) forget();
}

bool Pace::refused(TimePoint left, TimePoint now) {
  if (limit_) refused_share_ += answer_weight * (1 - refused_share_);
  if (limit_ && left < cut_at_) return false;
  if (limit_ && took_since_cut_ && now - cut_at_ < one_second && !reopens_to_) return false;
  peak_ = std::max<double>(peak_, moments_.sum(20, now));
  if (refused_in_row_++ == 0) refused_since_ = now;
  const double taken = kept_share * taken_rate(now);
  if (!limit_) {
    set_base(std::max(taken > 0 ? taken : first_rate, lowest), now);
    reopens_to_ = no_target;
    refused_share_ = 0.5;
  } else {
    const bool has_closed = is_closed(now);
    if (reopens_to_ && took_since_cut_) reopens_to_ = std::min(*reopens_to_, peak_) * cut_share;
    if (reopens_to_ && *reopens_to_ <= *limit_) reopens_to_.reset();
    if (has_closed && !reopens_to_) reopens_to_ = *limit_;
    set_base(
        std::max({std::min(*limit_,
                           std::max(*limit_ * (1 - cut_share * (has_closed ? 1 : refused_share_)), taken)),
                  lowest}),
        now);
  }
  cut_at_ = raised_at_ = now;
  took_since_cut_ = false;
  // Senders that share a relay and met there must not meet again.
  next_ = now + std::chrono::duration_cast<std::chrono::nanoseconds>(
                    gap() * std::uniform_real_distribution<double>(0.5, 1.5)(random_));
  return true;
}

/// True if the receiver has taken nothing for some time: its quota is that of a longer time.
bool Pace::is_closed(TimePoint now) const {
  return limit_ && !took_since_cut_ && (now - last_taken_ > one_second || refused_in_row_ > refusals_borne);
}

/// What was taken lately, per second.
double Pace::taken_rate(TimePoint now) const {
  const double rate = seconds_.sum(60, now) / 60.0;
  if (is_closed(now)) return std::min(rate, probing_rate);
  return std::max<double>({rate, seconds_.sum(10, now) / 10.0, moments_.sum(20, now) * 1.0});
}

void Pace::set_base(double limit, TimePoint now) {
  limit_ = base_ = limit;
  grows_since_ = now;
}

void Pace::forget() {
  limit_.reset();
  reopens_to_.reset();
  peak_ = 0;
  next_ = {};
}

Milliseconds ReturnTimes::next(TimePoint now, std::chrono::nanoseconds least, std::chrono::nanoseconds gap) {
  last_ = std::max(last_ + gap, now + least);
  if (last_ > now + longest) last_ = now + least;
  return std::chrono::ceil<Milliseconds>(last_ - now);
}

}  // namespace mailroom::delivery
