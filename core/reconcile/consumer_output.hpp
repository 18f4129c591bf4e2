// Reads back the lines that consumers have written, in CSV or JSON, for mailroom reconcile --against.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accounts/token_lookup.hpp"
#include "crypto/key_ring.hpp"
#include "selection/id_range.hpp"

namespace mailroom::reconcile {

/// A token as a consumer's line has it. Nothing is verified yet.
struct WrittenToken {
  std::string token;
  std::string code;
  std::optional<std::int64_t> id{};  ///< of a token without a signature, in a line of JSON

  bool operator==(const WrittenToken&) const = default;
};

/// A line that `mailroom collect` wrote.
struct OutputLine {
  std::optional<std::string> queue{};  ///< JSON names it
  std::vector<WrittenToken> tokens{};
};

/// Reads a line of either format, without its newline; nullopt if it is none, or torn.
std::optional<OutputLine> parse_output_line(std::string_view line);

/// A line of a consumer's output that cannot be right.
struct OutputDefect {
  std::string file;
  std::int64_t line = 0;  ///< the first is 1
  std::string text;
};

/// What consumers of a queue have written, by the ids of the tokens in the database.
struct ConsumerOutput {
  std::vector<selection::IdRange>
      written{};              ///< ordered by first id; a token that was written twice is in two
  std::int64_t begun_at = 0;  ///< when reading began, by the server's clock, in microseconds since 1970
  std::int64_t lines = 0;
  std::int64_t tokens = 0;
  std::int64_t torn_lines = 0;          ///< cut off, as a consumer leaves them that is killed while it writes
  std::int64_t defective = 0;           ///< tokens that no key has signed, or that do not exist
  std::vector<OutputDefect> defects{};  ///< at most `most_defects`
};

constexpr std::size_t most_defects = 1000;

/// Reads the files that consumers of `queue` have written; `-` is standard input. Verifies each token, and
/// looks it up. Lines that name another queue are left out. Throws Error(failed) for a file that cannot be
/// read.
ConsumerOutput read_consumer_output(db::Connection& connection, const crypto::KeyRing& keys,
                                    const std::string& queue, const std::vector<std::string>& files);

}  // namespace mailroom::reconcile
