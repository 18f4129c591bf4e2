#include "fault/oracle.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "crypto/key_ring.hpp"
#include "support/test_collector.hpp"
#include "support/test_database.hpp"
#include "support/write_load.hpp"

namespace mailroom::test {
namespace {

std::string hexadecimal(const Secret& secret) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const auto byte : secret) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

void count_line(const std::string& line, Verifier& verifier, std::map<TokenIdentity, int>& found) {
  const auto batch = nlohmann::json::parse(line);
  for (const auto& token : batch.at("tokens")) {
    const auto decoded = decode_token(token.at("token").get<std::string>());
    if (!decoded || !verifier.verify(*decoded, token.at("code").get<std::string>(), false))
      throw std::runtime_error("a token does not verify");
    ++found[{token.at("id").get<std::int64_t>(), hexadecimal(decoded->secret)}];
  }
}

}  // namespace

std::map<TokenIdentity, int> emissions(const std::vector<std::string>& outputs) {
  std::map<TokenIdentity, int> found;
  Verifier verifier(KeyRing{Key::from_hex(test_key, "the test"), {}});
  for (const auto& output : outputs) {
    std::size_t start = 0;
    for (auto end = output.find('\n'); end != std::string::npos; end = output.find('\n', start)) {
      if (end > start) count_line(output.substr(start, end - start), verifier, found);
      start = end + 1;
    }
  }
  return found;
}

std::vector<TokenIdentity> committed(Connection& connection) {
  std::vector<TokenIdentity> tokens;
  for (const auto& row :
       connection.run("SELECT id, encode(secret, 'hex') FROM tokens WHERE expires_at > created_at"))
    tokens.emplace_back(row[0].as<std::int64_t>(), row[1].c_str());
  return tokens;
}

Tally compare(const std::vector<TokenIdentity>& committed, const std::map<TokenIdentity, int>& emitted) {
  const std::set<TokenIdentity> known(committed.begin(), committed.end());
  Tally tally{.committed = known.size(), .emitted = emitted.size()};
  for (const auto& token : known)
    tally.lost += emitted.count(token) == 0 ? 1 : 0;
  for (const auto& [token, times] : emitted) {
    tally.strange += known.count(token) == 0 ? 1 : 0;
    tally.repeated += static_cast<std::size_t>(times - 1);
  }
  return tally;
}

bool is_drained(Connection& connection) {
  return unfinished_work(connection) == 0 &&
         value<bool>(connection,
                     "SELECT (SELECT cursor FROM mailroom_queue_state('mailroom')) >= "
                     "coalesce((SELECT max(id) FROM tokens), 0)");
}

}  // namespace mailroom::test
