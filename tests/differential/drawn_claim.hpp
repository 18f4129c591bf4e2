#pragma once

#include <string>

#include "differential/chance.hpp"
#include "differential/play.hpp"

namespace mailroom::test {

PlayedClaim draw_claim(Chance& chance, std::size_t step);

std::string text_of(const PlayedClaim& claim);
std::string text_of(const PlayedDefinition& definition);

}  // namespace mailroom::test
