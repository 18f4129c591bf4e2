// Draws claims of every kind.

#include "differential/drawn_claim.hpp"

#include <fmt/format.h>

namespace mailroom::test {

PlayedClaim draw_claim(Chance& chance, std::size_t step) {
  using enum PlayedClaim::Receipt;
  static constexpr std::array receipts{newest, newest, newest, newest, oldest,
                                       oldest, none,   none,   any,    overtaken};
  PlayedClaim claim;
  if (chance.one_in(12))
    claim.limit = 0;
  else
    claim.limit = chance.from(1, chance.one_in(3) ? 12 : 4);
  claim.partial = !chance.one_in(3);
  claim.take_over = !chance.one_in(5);
  claim.publish = chance.one_in(2);
  // A collector that only acknowledges does not poll.
  claim.routine = chance.one_in(6) && claim.limit > 0;
  claim.wakes = chance.one_in(8);
  claim.without_lock = chance.one_in(20);
  claim.receipt = chance.of(receipts);
  claim.holds = chance.one_in(3);
  claim.chance = static_cast<std::uint64_t>(step) << 32 | chance.below(1U << 31);
  return claim;
}

std::string text_of(const PlayedClaim& claim) {
  static constexpr std::array receipts{"no receipt", "the oldest receipt", "the newest receipt",
                                       "any receipt", "an overtaken receipt"};
  return fmt::format("{} tokens{}{}{}{}, {}{}{}", claim.limit, claim.partial ? "" : ", only full",
                     claim.take_over ? "" : ", takes nothing over", claim.routine ? ", routine" : "",
                     claim.wakes ? ", wakes" : "", receipts.at(static_cast<std::size_t>(claim.receipt)),
                     claim.without_lock ? ", without the lock" : "", claim.holds ? ", holds the newest" : "");
}

std::string text_of(const PlayedDefinition& definition) {
  const auto actions = definition.actions ? (*definition.actions->begin())->name : "all";
  if (!definition.gap) return fmt::format("{} tokens at any rate", actions);
  return fmt::format("{} tokens, one in {} units, {} at once", actions, *definition.gap, definition.burst);
}

}  // namespace mailroom::test
