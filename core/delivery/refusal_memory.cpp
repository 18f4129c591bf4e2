// Counts equal refusals in a row, and remembers for minutes which kinds met some messages only.

#include "delivery/refusal_memory.hpp"

#include <algorithm>

namespace mailroom::delivery {
namespace {

/// Of two attempts that began at about the same time, one shows as much of the other as if it came after.
constexpr Milliseconds beside{250};

using Minutes = std::chrono::minutes;

/// In whole minutes, so that the text of a kind that goes on does not change with each refusal.
std::int64_t minutes_of(WallTime time) {
  return std::chrono::floor<Minutes>(time.time_since_epoch()).count();
}

WallTime time_of(const nlohmann::json& value) {
  return WallTime(Minutes(value.get<std::int64_t>()));
}

}  // namespace

RefusalMemory::Kind& RefusalMemory::kind(const std::string& key) {
  constexpr std::size_t most = 256;
  if (kinds_.size() >= most && !kinds_.contains(key)) {
    kinds_.erase(std::ranges::min_element(kinds_, {}, [](const auto& kind) { return kind.second.last; }));
  }
  return kinds_[key];
}

void RefusalMemory::accepted(const std::string& own_key, WallTime began, WallTime now) {
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
  kind.why = mail.why;
  if (kind.since == WallTime{}) kind.since = now;
  kind.is_unclear = mail.by_words == RefusalSubject::unclear;
  const bool meets_some = meets_some_again(kind, kind.is_unclear ? equal_run : longest_run, now);
  const bool is_mixed_run = unclear_in_row() >= mixed_run;
  if (meets_some && !is_mixed_run) return RefusalSubject::recipient;
  // A probe is no victim, and neither are the mails that come after it.
  if (mail.is_probe) kind.in_row = std::max(kind.in_row, equal_run);
  const bool meets_all = kind.in_row >= equal_run || is_mixed_run;
  return meets_all ? RefusalSubject::everyone : mail.by_words;
}

int RefusalMemory::unclear_in_row() const {
  int sum = 0;
  for (const auto& [key, kind] : kinds_)
    sum += kind.is_unclear ? kind.in_row : 0;
  return sum;
}

nlohmann::json RefusalMemory::json(WallTime now) const {
  auto kinds = nlohmann::json::array();
  for (const auto& [key, kind] : kinds_) {
    if (kind.is_limit || (kind.in_row == 0 && kind.some_until <= now)) continue;
    kinds.push_back({{"key", key},
                     {"in_row", kind.in_row},
                     {"is_unclear", kind.is_unclear},
                     {"since", minutes_of(kind.since)},
                     {"last", minutes_of(kind.last)},
                     {"some_until", minutes_of(kind.some_until)},
                     {"why", kind.why}});
  }
  return kinds;
}

void RefusalMemory::take(const nlohmann::json& kinds) {
  std::erase_if(kinds_, [](const auto& kind) { return !kind.second.is_limit; });
  for (const auto& kind : kinds) {
    this->kind(kind.at("key").get<std::string>()) = {.in_row = kind.at("in_row").get<int>(),
                                                     .is_unclear = kind.at("is_unclear").get<bool>(),
                                                     .since = time_of(kind.at("since")),
                                                     .last = time_of(kind.at("last")),
                                                     .some_until = time_of(kind.at("some_until")),
                                                     .why = text_at(kind, "why")};
  }
}

void RefusalMemory::meets_some(const std::string& key, WallTime now, const std::string& why) {
  auto& kind = this->kind(key);
  kind.some_until = now + kept;
  kind.last = now;
  if (kind.since == WallTime{}) kind.since = now;
  if (!why.empty()) kind.why = why;
}

bool RefusalMemory::limited(const std::string& key, WallTime now) {
  auto& kind = this->kind(key);
  kind.is_limit = true;
  return meets_some_again(kind, equal_run, now);
}

}  // namespace mailroom::delivery
