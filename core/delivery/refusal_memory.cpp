// Counts equal refusals in a row, and remembers for minutes which kinds met some messages only.

#include "delivery/refusal_memory.hpp"

#include <algorithm>

namespace mailroom::delivery {

RefusalMemory::Kind& RefusalMemory::kind(const std::string& key) {
  constexpr std::size_t most = 16;
  if (kinds_.size() >= most && !kinds_.contains(key)) {
    kinds_.erase(std::ranges::min_element(kinds_, {}, [](const auto& kind) { return kind.second.last; }));
  }
  return kinds_[key];
}

void RefusalMemory::accepted(WallTime began, WallTime now) {
  in_row_ = 0;
  for (auto& [key, kind] : kinds_) {
    kind.in_row = 0;
    const bool contradicts = kind.last < began && now - kind.last < kept;
    if (contradicts && !kind.is_limit) kind.some_until = now + kept;
  }
}

bool RefusalMemory::meets_some_again(Kind& kind, WallTime now) {
  kind.last = now;
  if (++kind.in_row >= equal_run) kind.some_until = {};
  return now < kind.some_until;
}

RefusalSubject RefusalMemory::refused(const std::string& key, RefusalSubject by_words, bool is_probe,
                                      WallTime now) {
  auto& kind = this->kind(key);
  kind.is_limit = false;
  if (by_words == RefusalSubject::unclear) ++in_row_;
  const bool meets_some = meets_some_again(kind, now);
  if (meets_some && in_row_ < mixed_run) return RefusalSubject::recipient;
  // A probe is no victim, and neither are the mails that come after it.
  if (is_probe) kind.in_row = std::max(kind.in_row, equal_run);
  const bool meets_all = kind.in_row >= equal_run || in_row_ >= mixed_run;
  return meets_all ? RefusalSubject::everyone : by_words;
}

bool RefusalMemory::limited(const std::string& key, WallTime now) {
  auto& kind = this->kind(key);
  kind.is_limit = true;
  return meets_some_again(kind, now);
}

}  // namespace mailroom::delivery
