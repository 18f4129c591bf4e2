// Reads columns by their position, so their order is that of the functions in the migrations. Trusts the
// digits that the server writes, and checks only how long a secret is.

#include "claim/claim_rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <span>

#include "base/encoded_text.hpp"
#include "claim/message_rows.hpp"

namespace mailroom::claim {
namespace {

constexpr int claim_columns = 12;

constexpr int message_column = 8;  ///< among those of a token
constexpr std::size_t token_fields = 10;
constexpr std::size_t token_fields_with_creation = 11;

/// Of mailroom_batch_mails(), before those of the message.
constexpr int mail_columns = 19;

/// The columns of a token. Without its creation a drain in large batches is 5 % faster.
const char* token_columns(bool with_creation) {
  return with_creation
             ? "t.id, t.action, t.secret, t.code, t.expires_at, t.email, t.login, t.state, t.message, t.recipient, t.created_at"
             : "t.id, t.action, t.secret, t.code, t.expires_at, t.email, t.login, t.state, t.message, t.recipient";
}

/// The last ones, so that the others keep their places.
constexpr const char* trace_columns =
    ", t.traceparent, round(extract(epoch FROM t.message_created_at) * 1000000)::bigint, t.was_tried";
constexpr int trace_column_count = 3;

TokenRow token_of(const pqxx::row& row, int first_column, bool with_creation, queue::KnownActions& actions) {
  std::array<std::string_view, token_fields_with_creation> fields;
  const auto count = with_creation ? token_fields_with_creation : token_fields;
  for (std::size_t i = 0; i < count; ++i) {
    const auto field = row[first_column + static_cast<int>(i)];
    fields[i] = {field.c_str(), field.size()};
  }
  TokenRow token{.id = read_number(fields[0]),
                 .action = actions.require(fields[1]),
                 .secret = read_secret(fields[2]),
                 .code = fields[3],
                 .expires_at = read_number(fields[4]),
                 .email = fields[5],
                 .login = fields[6],
                 .state = parse_token_state(fields[7]),
                 .created_at = with_creation ? read_number(fields[token_fields]) : 0};
  if (fields[message_column].empty()) return token;
  token.message = read_number(fields[message_column]);
  token.recipient = static_cast<int>(read_number(fields[9]));
  return token;
}

TraceOrigin trace_of(const pqxx::row& row, std::int64_t created_at) {
  const auto at = [&](int place) { return row[static_cast<int>(row.size()) - trace_column_count + place]; };
  const auto asked_at = db::optional_of<std::int64_t>(at(1)).value_or(created_at * 1'000'000);
  using Moments = decltype(TraceOrigin::asked_at);
  return {.traceparent = {at(0).c_str(), at(0).size()},
          .asked_at = Moments(std::chrono::microseconds(asked_at)),
          .was_tried = at(2).as<bool>()};
}

/// A wait of mailroom_claim() in seconds, or `Infinity`.
template <typename Field>
std::optional<Milliseconds> wait_of(const Field& field) {
  if (std::string_view(field.c_str()) == "Infinity") return std::nullopt;
  return std::chrono::ceil<Milliseconds>(std::chrono::duration<double>(field.template as<double>()));
}

}  // namespace

std::string claim_sql() {
  return R"(
SELECT * FROM mailroom_claim($1, $2, $3, $4, $5, $6, $7, $8,
  ROW($9, $10, $11, $12, $13, $14, $15, $16, $17::jsonb, $18, $19)::mailroom_receipt, $20))";
}

std::string claim_and_fetch_sql(bool with_creation, bool with_messages) {
  const auto tokens = fmt::format(R"(
FROM ({}) c
LEFT JOIN LATERAL (
  SELECT {} FROM mailroom_fetch(CASE WHEN c.size < {} THEN c.batch END, c.attempt, c.messages) t) t ON true)",
                                  claim_sql(), token_columns(with_creation), streamed_size);
  if (!with_messages) return "SELECT c.*, t.*" + tokens;
  // A message that is committed after the snapshot of this statement does not come along.
  return fmt::format(R"(
SELECT c.*, t.*, {}{}
LEFT JOIN LATERAL (
  SELECT * FROM mailroom_messages s
  WHERE c.size <= {} AND t.message IS NOT NULL AND s.id = t.message AND {} LIMIT 1) m ON true)",
                     message_columns(stored_attachments, "m.id"), tokens, tokens_with_contents,
                     is_small_message("s"));
}

std::string fetch_sql(const TokenDetail& detail) {
  if (!detail.delivers)
    return fmt::format("SELECT {} FROM mailroom_batch_tokens($1, $2) t", token_columns(detail.with_creation));
  return fmt::format(R"(
SELECT {}, t.account, t.attempts, t.unknowns, t.newer, t.resent_at, t.mail_key, t.suppressed, t.home, {}{}
FROM mailroom_batch_mails($1, $2, {}) t LEFT JOIN LATERAL (SELECT t.* WHERE $3 AND {}) m ON true)",
                     token_columns(true), message_columns("m.attachments", "m.message"),
                     detail.reads_traces ? trace_columns : "", detail.reads_newer, is_small_message("t"));
}

ClaimReply read_reply(const pqxx::row& row, const std::string& queue) {
  ClaimReply reply;
  if (!row[0].is_null()) reply.lease = Lease{row[0].as<std::int64_t>(), row[1].as<int>(), queue};
  if (reply.lease) reply.size = row[2].as<int>();
  reply.pending = row[3].as<int>();
  if (!row[4].is_null()) reply.last = row[4].as<std::int64_t>();
  reply.more = row[5].as<bool>();
  reply.receipt_void = !row[6].is_null() && !row[6].as<bool>();
  if (!row[7].is_null()) reply.dead = row[7].as<std::int64_t>();
  reply.skipped = row[8].as<int>();
  reply.wait = wait_of(row[9]);
  if (!row[10].is_null()) reply.skipped_expired = row[10].as<int>();
  reply.messages = db::optional_of<bool>(row[11]).value_or(false);
  return reply;
}

bool has_tokens(const pqxx::result& claimed) {
  return claimed.columns() > claim_columns;
}

bool has_messages(const pqxx::result& claimed) {
  return std::ranges::any_of(claimed,
                             [](const auto& row) { return !row[claim_columns + message_column].is_null(); });
}

std::optional<TokenRow> read_claimed(const pqxx::row& row, bool with_creation, queue::KnownActions& actions) {
  if (row[claim_columns].is_null()) return std::nullopt;
  return token_of(row, claim_columns, with_creation, actions);
}

TokenRow read_fetched(const pqxx::row& row, const TokenDetail& detail, queue::KnownActions& actions) {
  auto token = token_of(row, 0, detail.delivers || detail.with_creation, actions);
  if (!detail.delivers) return token;
  const auto at = [&](int place) { return row[static_cast<int>(token_fields_with_creation) + place]; };
  token.account = db::optional_of<std::int64_t>(at(0)).value_or(0);
  token.attempts = at(1).as<int>();
  token.unknowns = at(2).as<int>();
  token.newer = db::optional_of<std::int64_t>(at(3));
  token.resent_at = db::optional_of<std::int64_t>(at(4));
  token.mail_key = {at(5).c_str(), at(5).size()};
  token.suppressed = {at(6).c_str(), at(6).size()};
  token.home = {at(7).c_str(), at(7).size()};
  if (detail.reads_traces) token.trace = trace_of(row, token.created_at);
  return token;
}

std::optional<MessageContent> read_fetched_message(const pqxx::row& row, const TokenDetail& detail) {
  if (!detail.delivers) return std::nullopt;
  return read_optional_message(row, mail_columns);
}

std::optional<MessageContent> read_claimed_message(const pqxx::row& row, bool with_creation) {
  const auto tokens_end =
      claim_columns + static_cast<int>(with_creation ? token_fields_with_creation : token_fields);
  if (tokens_end == static_cast<int>(row.size())) return std::nullopt;
  return read_optional_message(row, tokens_end);
}

std::optional<crypto::Secret> read_secret(std::string_view text) {
  if (text.size() != 2 + 2 * crypto::secret_size) return std::nullopt;
  crypto::Secret secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) {
    secret[i] = static_cast<std::uint8_t>(hex_value(text[2 + 2 * i]) * 16 + hex_value(text[3 + 2 * i]));
  }
  return secret;
}

std::int64_t read_number(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

TokenState parse_token_state(std::string_view text) {
  if (text == "due") return TokenState::due;
  if (text == "consumed") return TokenState::consumed;
  if (text == "expired") return TokenState::expired;
  if (text == "wrong status") return TokenState::wrong_status;
  throw Error(ExitCode::failed, "a token has a state that this version of mailroom does not know");
}

}  // namespace mailroom::claim
