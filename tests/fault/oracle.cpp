#include "fault/oracle.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/json.hpp"
#include "crypto/key_ring.hpp"
#include "support/actions.hpp"
#include "support/test_collector.hpp"
#include "support/test_database.hpp"
#include "support/write_load.hpp"

namespace mailroom::test {
namespace {

std::string hexadecimal(const crypto::Secret& secret) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const auto byte : secret) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

void count_line(const std::string& line, crypto::Verifier& verifier, std::map<std::string, Emissions>& all) {
  const auto batch = parse_json(line);
  auto& found = all[batch.at("queue").get<std::string>()];
  for (const auto& token : batch.at("tokens")) {
    const auto decoded = crypto::decode_token(token.at("token").get<std::string>());
    if (!decoded || !verifier.verify(*decoded, token.at("code").get<std::string>(), false))
      throw std::runtime_error("a token does not verify");
    ++found[{token.at("id").get<std::int64_t>(), hexadecimal(decoded->secret)}];
  }
}

}  // namespace

std::map<std::string, Emissions> emissions(const std::vector<std::string>& outputs) {
  std::map<std::string, Emissions> found;
  crypto::Verifier verifier(crypto::KeyRing{crypto::Key::from_hex(test_key, "the test"), {}},
                            queue::Actions::built_in().signed_paths());
  for (const auto& output : outputs) {
    std::size_t start = 0;
    for (auto end = output.find('\n'); end != std::string::npos; end = output.find('\n', start)) {
      if (end > start) count_line(output.substr(start, end - start), verifier, found);
      start = end + 1;
    }
  }
  return found;
}

std::vector<TokenIdentity> committed(db::Connection& connection, const std::string& action) {
  std::vector<TokenIdentity> tokens;
  for (const auto& row : connection.run("SELECT id, encode(secret, 'hex') FROM tokens "
                                        "WHERE expires_at > created_at AND ($1 = '' OR action::text = $1)",
                                        action))
    tokens.emplace_back(row[0].as<std::int64_t>(), row[1].c_str());
  return tokens;
}

Tally compare(const std::vector<TokenIdentity>& committed, const Emissions& emitted,
              const std::vector<Replay>& replays) {
  const std::set<TokenIdentity> known(committed.begin(), committed.end());
  Tally tally{.committed = known.size(), .emitted = emitted.size()};
  for (const auto& token : known) {
    const bool again = std::any_of(replays.begin(), replays.end(),
                                   [&](const auto& replay) { return replay.emitted.count(token.first) > 0; });
    const auto found = emitted.find(token);
    tally.lost += found == emitted.end() || (again && found->second < 2) ? 1 : 0;
  }
  for (const auto& [token, times] : emitted) {
    tally.strange += known.count(token) == 0 ? 1 : 0;
    const auto id = token.first;
    const auto asked = std::count_if(replays.begin(), replays.end(), [&](const auto& replay) {
      return replay.after < id && id <= replay.to;
    });
    tally.repeated += static_cast<std::size_t>(std::max<std::ptrdiff_t>(times - 1 - asked, 0));
  }
  return tally;
}

Tally& operator+=(Tally& sum, const Tally& tally) {
  sum.committed += tally.committed;
  sum.emitted += tally.emitted;
  sum.lost += tally.lost;
  sum.strange += tally.strange;
  sum.repeated += tally.repeated;
  sum.untimely += tally.untimely;
  return sum;
}

bool is_drained(db::Connection& connection) {
  // In this order: between the two a claim may take the last tokens, which are open then.
  return value<bool>(connection, R"(
SELECT NOT EXISTS (SELECT FROM mailroom_schedule) AND NOT EXISTS (
  SELECT FROM jobs j, mailroom_queue_state(j.job_type) s, tokens t
  WHERE t.id > s.cursor AND mailroom_takes(mailroom_queue_actions(j.job_type), t.action)))") &&
         unfinished_work(connection) == 0;
}

}  // namespace mailroom::test
