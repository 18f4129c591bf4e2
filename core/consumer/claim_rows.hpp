// The SQL between a collector and mailroom_claim(), for batches with and without outcomes.
#pragma once

#include <optional>
#include <string>

#include "consumer/queue_session.hpp"
#include "db/connection.hpp"

/// The statements with which a session claims and reads batches, and what their rows say.
namespace mailroom {

/// A batch of at least this many tokens does not come with its claim.
constexpr int streamed_size = 1000;

/// Claims: 20 parameters, those of mailroom_claim() with the fields of its receipt.
std::string claim_sql();
/// The claim, joined with the tokens of a batch below `streamed_size`, one row for each.
std::string claim_and_fetch_sql(bool with_creation);
/// Reads the tokens of batch $1, if $2 is its attempt.
std::string fetch_sql(bool with_creation);
/// The same with what a sink with outcomes needs; `reads_newer` and `counted_period` as in
/// PgQueueSession::Setup.
std::string fetch_mails_sql(bool reads_newer, std::optional<Milliseconds> counted_period);

/// What the first row of a claim says of `queue`.
ClaimReply read_reply(const pqxx::row& row, const std::string& queue);
/// True if rows of a claim have the columns of tokens.
bool has_tokens(const pqxx::result& claimed);

/// Its views are valid as long as the result that has the row.
TokenRow read_fetched(const pqxx::row& row, bool with_creation);
/// The same for a row of claim_and_fetch_sql(); nullopt if it has no token.
std::optional<TokenRow> read_claimed(const pqxx::row& row, bool with_creation);
/// The same for a row of fetch_mails_sql().
TokenRow read_mail(const pqxx::row& row);

}  // namespace mailroom
