// Counts equal refusals in a row, and remembers for minutes which kinds met some messages only.

#include "delivery/refusal_memory.hpp"

#include <algorithm>

namespace mailroom::delivery {

RefusalMemory::Kind& RefusalMemory::kind(const std::string& key) {
  constexpr std::size_t most = 256;
  if (kinds_.size() >= most && !kinds_.contains(key)) {
    kinds_.erase(std::ranges::min_element(kinds_, {}, [](const auto& kind) { return kind.second.last; }));
  }
  return kinds_[key];
}

namespace {

/// Of two attempts that began at about the same time, one shows as much of the other as if it came after.
constexpr Milliseconds beside{250};

}  // namespace

void RefusalMemory::accepted(const std::string& own_key, WallTime began, WallTime now) {
  in_row_ = 0;
  kinds_.erase(own_key);
  for (auto& [key, kind] : kinds_) {
    kind.in_row = 0;
    const bool contradicts = kind.last < began + beside && now - kind.last < kept;
    if (contradicts && !kind.is_limit) kind.some_until = now + kept;
  }
}

bool RefusalMemory::meets_some_again(Kind& kind, int longest, WallTime now) {
  kind.last = now;
  if (++kind.in_row >= longest) kind.some_until = {};
  return now < kind.some_until;
}

RefusalSubject RefusalMemory::refused(const RefusedMail& mail, WallTime now) {
  auto& kind = this->kind(mail.key);
  kind.is_limit = false;
  // Others were taken since it, or its sender, was refused before: that it is again says nothing of them.
  if (now < kind.some_until && (mail.is_of_sender || mail.was_refused)) {
    kind.last = now;
    return RefusalSubject::recipient;
  }
  const bool is_unclear = mail.by_words == RefusalSubject::unclear;
  if (is_unclear) ++in_row_;
  const bool meets_some = meets_some_again(kind, is_unclear ? equal_run : longest_run, now);
  if (meets_some && in_row_ < mixed_run) return RefusalSubject::recipient;
  // A probe is no victim, and neither are the mails that come after it.
  if (mail.is_probe) kind.in_row = std::max(kind.in_row, equal_run);
  const bool meets_all = kind.in_row >= equal_run || in_row_ >= mixed_run;
  return meets_all ? RefusalSubject::everyone : mail.by_words;
}

bool RefusalMemory::limited(const std::string& key, WallTime now) {
  auto& kind = this->kind(key);
  kind.is_limit = true;
  return meets_some_again(kind, equal_run, now);
}

}  // namespace mailroom::delivery
