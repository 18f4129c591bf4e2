// Which tokens a command means: the selectors that all verbs share, how they are read, and their SQL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "fate/outcome.hpp"
#include "selection/id_range.hpp"
#include "selection/mail_selectors.hpp"

namespace mailroom::selection {

/// Codes of a relay or a server from `first` to `last`: 550 to 550, or 500 to 599.
struct CodeRange {
  int first = 0;
  int last = 0;

  bool operator==(const CodeRange&) const = default;
};

/// What nobody knows for certain of a mail: how often it was taken.
enum class Doubt {
  none,
  perhaps_twice,  ///< it was accepted and an answer of another attempt is missing, or two answers are
  in_flight,      ///< an answer is missing, since a relay or a sender ended before it, or it is awaited now
};

/// Tokens that match each of the selectors that are given, and of each at least one value. Without any, all
/// tokens match.
struct Selection {
  std::vector<std::string> actions{};     ///< as the database names them
  std::vector<std::int64_t> accounts{};   ///< by id
  std::vector<fate::Outcome> outcomes{};  ///< the judge finds these, not the SQL
  std::vector<CodeRange> codes{};         ///< of the last answer to a delivery
  std::vector<std::int64_t> batches{};
  std::vector<std::string> consumers{};  ///< as claimed_by has them: `send`, `send@host` or `send@host:77`
  /// By the fingerprint of the key that signed a token last: in its newest mail that was accepted or, where
  /// none was, in no batch after the last one of these keys.
  std::vector<std::string> keys{};
  MailSelectors mail{};
  Doubt doubt = Doubt::none;
  std::optional<Moment> since{};  ///< of the creation of the token
  std::optional<Moment> until{};  ///< exclusive
  /// Of a mail that was accepted or may have been, whichever of a token's it is; of a token that is not
  /// delivered but printed, of its line.
  std::optional<Moment> mailed_since{};
  std::optional<Moment> mailed_until{};          ///< exclusive
  std::optional<std::vector<IdRange>> tokens{};  ///< named, or found by their outcomes

  bool empty() const;
  /// True if a token with this outcome matches. One that expired before a claim or a consumer came to it is
  /// `skipped`, and matches `expired` too.
  bool wants(fate::Outcome outcome, bool is_expired = false) const;
  /// The values of all selectors as JSON: the one parameter of condition().
  std::string parameter() const;
  /// The condition that a row `t` of tokens matches all selectors but the outcomes, beginning with AND.
  /// `parameter` and `queue` are placeholders or other SQL: `$3`, and the queue whose batches and deliveries
  /// count.
  std::string condition(std::string_view parameter, std::string_view queue) const;
  /// The condition that a row `b` of mailroom_batches is one of `batches`, `consumers` and `keys`, likewise.
  std::string batch_condition(std::string_view parameter) const;
};

/// The condition that a row `t` of tokens that batches of `keys` hold was signed with one of them last,
/// beginning with AND. A mail without a link or a code is signed by none. `keys` is SQL for an array of
/// fingerprints in parentheses, `queue` SQL for the queue.
std::string signed_last_sql(std::string_view queue, std::string_view keys);

// These read one value of a list. Each throws Error(usage) for anything else; `option` names the option.

/// `rejected`, `emitted again` or `emitted_again`.
fate::Outcome parse_outcome(const std::string& option, const std::string& text);
/// `perhaps_twice` or `in flight`; nullopt for another word.
std::optional<Doubt> find_doubt(const std::string& text);
/// The words that find_doubt() takes.
std::vector<std::string> doubt_words();
/// All words that parse_outcome() takes, in the order of reports.
std::vector<std::string> outcome_words();
/// `550`, or `5xx` for all that begin with 5.
CodeRange parse_code(const std::string& option, const std::string& text);
/// `0eae0c88ac3a5e1a`, as status shows the key of a consumer.
std::string parse_key_fingerprint(const std::string& option, const std::string& text);
/// The parts of a list between its commas. A name with a prefix that may hold commas is one part: login:a,b.
std::vector<std::string> split_list(const std::string& text);

}  // namespace mailroom::selection
