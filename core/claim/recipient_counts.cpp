// Compares addresses as they are mailed: an international domain is on record in ASCII.

#include "claim/recipient_counts.hpp"

#include <variant>

#include "base/json.hpp"
#include "mail/address.hpp"

namespace mailroom::claim {
namespace {

/// $1: the queue, $2: tokens with their addresses, $3: the period in ms, $4: the highest count of interest.
/// The conditions are written as those of the index are. LIMIT ends the look-up of an address that gets many.
const std::string counts_sql = R"(
SELECT r.token, r.address, (
  SELECT count(*) FROM (
    SELECT FROM mailroom_deliveries d
    WHERE d.queue = $1 AND d.counted_as = r.address AND d.token <> r.token
      AND coalesce(d.accepted_at, d.last_at) > (SELECT clock_timestamp()) - $3::bigint * interval '1 ms'
    LIMIT $4::bigint) m) AS mailed
FROM (SELECT j.token, mailroom_canonical(j.address) AS address FROM jsonb_to_recordset($2::jsonb) j (token bigint, address text)) r)";

}  // namespace

void RecipientCounts::read(db::Connection& connection, const std::string& queue, const config::Rate& limit,
                           const std::vector<TokenRow>& tokens) {
  counts_.clear();
  auto recipients = nlohmann::json::array();
  for (const auto& token : tokens) {
    const auto address = mail::parse_address(token.email);
    // What cannot be mailed is not counted.
    if (const auto* to = std::get_if<mail::Address>(&address))
      recipients.push_back({{"token", token.id}, {"address", to->text()}});
  }
  if (recipients.empty()) return;
  rows_ = connection.run(counts_sql, queue, json_text(recipients), limit.period.count(), limit.count);
  for (const auto& row : rows_) {
    counts_[row.number("token")] = {.counted_as = row.view("address"), .mailed = row.number<int>("mailed")};
  }
}

void RecipientCounts::set(TokenRow& token) const {
  const auto found = counts_.find(token.id);
  if (found == counts_.end()) return;
  token.counted_as = found->second.counted_as;
  token.mailed = found->second.mailed;
}

}  // namespace mailroom::claim
