// Each selector is one clause, which is left out if the selector is not given: it costs nothing then.

#include "selection/selection.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"

namespace mailroom::selection {
namespace {

/// `{[550,551),[500,600)}`, an int4multirange.
std::string codes_text(const std::vector<CodeRange>& codes) {
  std::string text;
  for (const auto& code : codes)
    text += fmt::format("{}[{},{}]", text.empty() ? "" : ",", code.first, code.last);
  return "{" + text + "}";
}

std::string list_sql(std::string_view parameter, std::string_view key, std::string_view type) {
  return fmt::format("(ARRAY(SELECT jsonb_array_elements_text({}::jsonb->'{}')::{}))", parameter, key, type);
}

/// The condition that a token `t` was mailed in a period. Its last outcome is in the row of its delivery,
/// each earlier one in earlier_attempts. One without a delivery was printed.
std::string mailed_sql(std::string_view parameter, std::string_view queue, bool has_since, bool has_until) {
  const auto within = [&](std::string_view at) {
    std::string sql;
    if (has_since)
      sql += fmt::format(" AND {} >= to_timestamp(({}::jsonb->>'mailed_since')::bigint)", at, parameter);
    if (has_until)
      sql += fmt::format(" AND {} < to_timestamp(({}::jsonb->>'mailed_until')::bigint)", at, parameter);
    return sql;
  };
  // No outcome of a delivery is newer than its last_at, which has an index.
  const auto recent =
      has_since
          ? fmt::format(" AND e.last_at >= to_timestamp(({}::jsonb->>'mailed_since')::bigint)", parameter)
          : "";
  return fmt::format(
      R"(
  AND (t.id IN (SELECT e.token FROM mailroom_deliveries e WHERE e.queue = {0}{1} AND (
          (e.state IN ('accepted', 'unknown'){2})
          OR EXISTS (SELECT FROM jsonb_array_elements(e.earlier_attempts) a (attempt)
                     WHERE a.attempt->>'state' IN ('accepted', 'unknown'){3})))
       OR (t.id <@ (SELECT coalesce(range_agg(g), '{{}}')
             FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g
             WHERE b.queue = {0} AND b.emitted > 0{4})
           AND NOT EXISTS (SELECT FROM mailroom_deliveries e WHERE e.queue = {0} AND e.token = t.id))){5})",
      queue, recent, within("coalesce(e.answered_at, e.last_at)"),
      within("coalesce(a.attempt->>'answered_at', a.attempt->>'at')::timestamptz"), within("b.emitted_at"),
      has_until ? fmt::format(" AND t.created_at <= ({}::jsonb->>'mailed_until')::bigint", parameter) : "");
}

/// The condition that it is not known how often the mail of a token `t` was taken.
std::string doubt_sql(Doubt doubt, std::string_view queue) {
  if (doubt == Doubt::none) return {};
  const auto delivered = fmt::format(
      "EXISTS (SELECT FROM mailroom_deliveries e WHERE e.queue = {} AND e.token = t.id "
      "AND floor(extract(epoch FROM e.last_at)) >= t.created_at AND e.unknowns + {} > {})",
      queue, doubt == Doubt::perhaps_twice ? "(e.accepted_at IS NOT NULL)::integer" : "0",
      doubt == Doubt::perhaps_twice ? 1 : 0);
  if (doubt == Doubt::perhaps_twice) return "\n  AND " + delivered;
  return fmt::format(R"(
  AND ({} OR t.id <@ (SELECT coalesce(range_agg(g), '{{}}') FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g
    WHERE b.queue = {} AND b.emitted_at IS NULL AND b.dead_at IS NULL)))",
                     delivered, queue);
}

}  // namespace

std::string signed_last_sql(std::string_view queue, std::string_view keys) {
  // The sets of ids are read once for all tokens. What was accepted before is in earlier_attempts, in order.
  return fmt::format(R"(
  AND EXISTS (SELECT FROM mailroom_actions k WHERE k.action = t.action::text AND (k.path IS NOT NULL OR k.has_code))
  AND coalesce((
    SELECT n.key = ANY {1} FROM mailroom_deliveries d JOIN mailroom_batches n ON n.id = CASE
      WHEN d.state = 'accepted' THEN d.batch
      ELSE (SELECT (e.attempt->>'batch')::bigint FROM jsonb_array_elements(d.earlier_attempts) WITH ORDINALITY e (attempt, place)
            WHERE e.attempt->>'state' = 'accepted' ORDER BY e.place DESC LIMIT 1) END
    WHERE d.queue = {0} AND d.token = t.id AND d.accepted_at IS NOT NULL),
    NOT t.id <@ (SELECT coalesce(range_agg(g), '{{}}')
      FROM mailroom_batches n, unnest(mailroom_batch_ids(n.ids, n.ids_mask)) g
      WHERE n.queue = {0} AND n.emitted > 0 AND n.key <> ALL {1}
        AND n.id > (SELECT max(m.id) FROM mailroom_batches m WHERE m.queue = {0} AND m.key = ANY {1}))))",
                     queue, keys);
}

bool Selection::empty() const {
  return actions.empty() && accounts.empty() && outcomes.empty() && codes.empty() && batches.empty() &&
         consumers.empty() && keys.empty() && mail.empty() && doubt == Doubt::none && !since && !until &&
         !mailed_since && !mailed_until && !tokens;
}

bool Selection::wants(fate::Outcome outcome, bool is_expired) const {
  const auto has = [&](fate::Outcome wanted) {
    return std::find(outcomes.begin(), outcomes.end(), wanted) != outcomes.end();
  };
  return outcomes.empty() || has(outcome) ||
         (is_expired && outcome == fate::Outcome::skipped && has(fate::Outcome::expired));
}

std::string Selection::parameter() const {
  auto object = nlohmann::json::object();
  if (!actions.empty()) object["actions"] = actions;
  if (!accounts.empty()) object["accounts"] = accounts;
  for (const auto outcome : outcomes)
    object["outcomes"].push_back(fate::outcome_name(outcome));
  if (!codes.empty()) object["codes"] = codes_text(codes);
  if (!batches.empty()) object["batches"] = batches;
  if (!consumers.empty()) object["consumers"] = consumers;
  if (!keys.empty()) object["keys"] = keys;
  mail.write(object);
  if (since) object["since"] = in_seconds(*since);
  if (until) object["until"] = in_seconds(*until);
  if (mailed_since) object["mailed_since"] = in_seconds(*mailed_since);
  if (mailed_until) object["mailed_until"] = in_seconds(*mailed_until);
  if (tokens) object["tokens"] = multirange_of(*tokens);
  return plain_json(object);
}

std::string Selection::condition(std::string_view parameter, std::string_view queue) const {
  // The parameter has a type, even if no clause needs it.
  auto sql = fmt::format(" AND {}::jsonb IS NOT NULL", parameter);
  if (!actions.empty())
    sql += fmt::format(" AND t.action::text = ANY {}", list_sql(parameter, "actions", "text"));
  if (!accounts.empty())
    sql += fmt::format(" AND t.account = ANY {}", list_sql(parameter, "accounts", "bigint"));
  if (since) sql += fmt::format(" AND t.created_at >= ({}::jsonb->>'since')::bigint", parameter);
  if (until) sql += fmt::format(" AND t.created_at < ({}::jsonb->>'until')::bigint", parameter);
  if (tokens) sql += fmt::format(" AND t.id <@ ({}::jsonb->>'tokens')::int8multirange", parameter);
  if (mailed_since || mailed_until)
    sql += mailed_sql(parameter, queue, mailed_since.has_value(), mailed_until.has_value());
  sql += mail.token_condition(parameter, queue);
  sql += doubt_sql(doubt, queue);
  if (!codes.empty()) {
    // An outcome that was recorded before the token was created was that of another token with its id.
    sql += fmt::format(R"(
  AND EXISTS (SELECT FROM mailroom_deliveries e WHERE e.queue = {1} AND e.token = t.id
    AND floor(extract(epoch FROM e.last_at)) >= t.created_at AND e.code <@ ({0}::jsonb->>'codes')::int4multirange))",
                       parameter, queue);
  }
  if (batches.empty() && consumers.empty() && keys.empty()) return sql;
  const auto recent =
      since
          ? fmt::format(" AND b.claimed_at >= to_timestamp(({}::jsonb->>'since')::bigint - 3600)", parameter)
          : "";
  // One set of ids, read once for all tokens. A token that was created after the lease has the id of another.
  return sql +
         fmt::format(R"(
  AND t.id <@ (SELECT coalesce(range_agg(g), '{{}}')
    FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask) + b.skipped_ids) g
    WHERE b.queue = {}{}{})",
                     queue, recent, batch_condition(parameter)) +
         ")" + (keys.empty() ? "" : signed_last_sql(queue, list_sql(parameter, "keys", "text")));
}

std::string Selection::batch_condition(std::string_view parameter) const {
  std::string sql;
  if (!batches.empty()) sql += fmt::format(" AND b.id = ANY {}", list_sql(parameter, "batches", "bigint"));
  if (!keys.empty()) sql += fmt::format(" AND b.key = ANY {}", list_sql(parameter, "keys", "text"));
  if (consumers.empty()) return sql;
  // A name, with or without its user, or its beginning up to one of its parts: send, send@host, send@host:77.
  return sql + fmt::format(R"(
      AND EXISTS (SELECT FROM unnest{} c, unnest(ARRAY[
                    regexp_replace(b.claimed_by, '^mailroom ', ''),
                    regexp_replace(b.claimed_by, '^mailroom ([a-z]+) [^ @]+@', '\1@')]) n (name)
                  WHERE starts_with(n.name, c) AND substr(n.name, length(c) + 1, 1) = ANY ('{{"","@",":"," "}}')))",
                           list_sql(parameter, "consumers", "text"));
}

fate::Outcome parse_outcome(const std::string& option, const std::string& text) {
  auto word = text;
  std::replace(word.begin(), word.end(), ' ', '_');
  std::replace(word.begin(), word.end(), '-', '_');
  if (const auto outcome = fate::find_outcome(word)) return *outcome;
  const auto words = outcome_words();
  const auto meant = nearest_word(word, words);
  throw Error(ExitCode::usage, fmt::format("{} has an unknown outcome '{}'", option, text),
              meant.empty() ? fmt::format("outcomes: {}", joined(words, ", ")) : "did you mean: " + meant);
}

std::optional<Doubt> find_doubt(const std::string& text) {
  auto word = text;
  std::replace(word.begin(), word.end(), ' ', '_');
  std::replace(word.begin(), word.end(), '-', '_');
  if (word == "perhaps_twice") return Doubt::perhaps_twice;
  if (word == "in_flight") return Doubt::in_flight;
  return std::nullopt;
}

std::vector<std::string> doubt_words() {
  return {"perhaps_twice", "in_flight"};
}

std::vector<std::string> outcome_words() {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < fate::outcome_count; ++i)
    words.emplace_back(fate::outcome_name(static_cast<fate::Outcome>(i)));
  return words;
}

CodeRange parse_code(const std::string& option, const std::string& text) {
  if (text.size() == 3 && text.ends_with("xx") && text.front() >= '1' && text.front() <= '5') {
    const int first = (text.front() - '0') * 100;
    return {.first = first, .last = first + 99};
  }
  const auto code = parse_number<int>(text);
  if (text.size() == 3 && code && *code >= 100) return {.first = *code, .last = *code};
  throw Error(ExitCode::usage, fmt::format("{} has '{}', which is no code", option, text),
              "for example 550, or 5xx for every code that begins with 5");
}

std::string parse_key_fingerprint(const std::string& option, const std::string& text) {
  constexpr std::size_t digits = 16;
  std::string key;
  for (const auto c : text)
    key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (key.size() == digits && key.find_first_not_of("0123456789abcdef") == std::string::npos) return key;
  throw Error(ExitCode::usage,
              fmt::format("{} has '{}', which is not the fingerprint of a key", option, text),
              "16 hexadecimal digits, as mailroom status and mailroom audit batch:N show them");
}

std::vector<std::string> split_list(const std::string& text) {
  if (text.starts_with("login:") || text.starts_with("email:")) return {text};
  std::vector<std::string> parts;
  for (const auto part : split(text, ','))
    parts.emplace_back(trimmed(part));
  return parts;
}

}  // namespace mailroom::selection
