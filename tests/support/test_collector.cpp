#include "support/test_collector.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "crypto/key_ring.hpp"

namespace mailroom::test {
namespace {

std::vector<std::string> collect(const std::vector<std::string>& options) {
  std::vector<std::string> words{"collect"};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

}  // namespace

TestCollector::TestCollector(const TestDatabase& database, const std::vector<std::string>& options,
                             const std::map<std::string, std::string>& environment)
    : TestCollector(database.conninfo(), options, environment) {}

TestCollector::TestCollector(const std::string& conninfo, const std::vector<std::string>& options,
                             const std::map<std::string, std::string>& environment,
                             const std::string& stdout_path)
    : TestConsumer(collect(options), conninfo, environment, stdout_path) {}

std::vector<nlohmann::json> emitted_tokens(const std::string& output) {
  std::vector<nlohmann::json> tokens;
  std::size_t start = 0;
  for (auto end = output.find('\n'); end != std::string::npos; end = output.find('\n', start)) {
    const auto batch = nlohmann::json::parse(output.substr(start, end - start));
    for (const auto& token : batch.at("tokens"))
      tokens.push_back(token);
    start = end + 1;
  }
  return tokens;
}

std::map<std::int64_t, int> emitted_ids(const std::string& output) {
  std::map<std::int64_t, int> ids;
  Verifier verifier(KeyRing{Key::from_hex(test_key, "the test"), {}});
  for (const auto& token : emitted_tokens(output)) {
    const auto decoded = decode_token(token.at("token").get<std::string>());
    const auto code = token.at("code").get<std::string>();
    if (!decoded || !verifier.verify(*decoded, code, false))
      throw std::runtime_error("a token does not verify");
    ++ids[token.at("id").get<std::int64_t>()];
  }
  return ids;
}

}  // namespace mailroom::test
