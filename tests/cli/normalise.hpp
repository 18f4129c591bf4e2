#pragma once

#include <string>
#include <utility>
#include <vector>

namespace mailroom::golden {

/// Texts that differ from run to run, each with the name that stands for it: {"/tmp/golden.x7", "<dir>"}.
using Places = std::vector<std::pair<std::string, std::string>>;

/// Replaces what differs from run to run by a name in angle brackets, as golden.cpp lists them.
std::string normalise(std::string text, const Places& places);

}  // namespace mailroom::golden
