// The SQL between a collector and mailroom_claim(), for batches with and without outcomes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "claim/queue_session.hpp"
#include "config/rate.hpp"
#include "db/connection.hpp"

/// The statements with which a session claims and reads batches, and what their rows say.
namespace mailroom::claim {

/// A batch of at least this many tokens does not come with its claim.
constexpr int large_batch = 100;

/// What a consumer needs to know of tokens.
struct TokenDetail {
  bool delivers = false;       ///< what a sink with outcomes needs: the rest of TokenRow
  bool with_creation = false;  ///< created_at, as with `delivers`; otherwise it is 0
  bool reads_newer = false;    ///< only with `delivers`: `newer`
  bool takes_turns = false;    ///< profiles do, where more waits than a batch has room for
  bool reads_traces = false;   ///< only with `delivers`: TokenRow::trace
  bool reads_raw = false;      ///< only with `delivers`: MessageContent::raw
  std::optional<config::Rate>
      per_recipient{};  ///< only with `delivers`: counts the mails to each address so far

  bool operator==(const TokenDetail&) const = default;
};

/// Claims: 20 parameters, those of mailroom_claim() with the fields of its receipt.
std::string claim_sql();
/// A row of the claim, then a row for each token of a batch below `large_batch`, `with_messages` with what
/// may come along of them.
std::string claim_and_fetch_sql(bool with_creation, bool with_messages);
/// Reads the tokens of batch $1, if $2 is its attempt; for a sink with outcomes also small messages, if $3.
std::string fetch_sql(const TokenDetail& detail);

/// What the first row of a claim says of `queue`.
ClaimReply read_reply(const db::Row& row, const std::string& queue);
/// True if a row of a claim has the columns of tokens.
bool has_tokens(const db::Row& claimed);
/// True if one of these tokens is of a message.
bool has_messages(const db::Rows& claimed);

/// A row of fetch_sql(). Its views are valid as long as the result that has the row.
TokenRow read_fetched(const db::Row& row, const TokenDetail& detail, queue::KnownActions& actions);
/// The message of the same row; nullopt if none has come along.
std::optional<MessageContent> read_fetched_message(const db::Row& row, const TokenDetail& detail);
/// The same as read_fetched() for a row of claim_and_fetch_sql(); nullopt if it has no token.
std::optional<TokenRow> read_claimed(const db::Row& row, bool with_creation, queue::KnownActions& actions);
/// The message of the same row; nullopt if none has come along.
std::optional<MessageContent> read_claimed_message(const db::Row& row);

// Fields of a token in PostgreSQL's text, from a statement or from COPY.

/// Reads the hex form of bytea: `\x`, then two lower-case digits per byte. Returns nullopt unless it has 32
/// bytes.
std::optional<crypto::Secret> read_secret(std::string_view text);

std::int64_t read_number(std::string_view text);

}  // namespace mailroom::claim
