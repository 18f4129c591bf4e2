// The parsers for rows of tokens, whether they come from a statement or from COPY.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "crypto/token.hpp"

/// PostgreSQL's text of the columns of a token.
namespace mailroom {

/// Reads the hex form of bytea: `\x`, then two lower-case digits per byte. Returns nullopt unless it has 32
/// bytes.
std::optional<Secret> read_secret(std::string_view text);

std::int64_t read_number(std::string_view text);

Action read_action(std::string_view text);

}  // namespace mailroom
