#include "support/test_collector.hpp"

#include <stdexcept>

#include "base/json.hpp"
#include "crypto/key_ring.hpp"
#include "support/actions.hpp"
#include "support/emitted_ids.hpp"

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
    const auto batch = parse_json(output.substr(start, end - start));
    for (const auto& token : batch.at("tokens"))
      tokens.push_back(token);
    start = end + 1;
  }
  return tokens;
}

std::map<std::int64_t, int> emitted_ids(const std::string& output) {
  std::map<std::int64_t, int> ids;
  crypto::Verifier verifier(crypto::KeyRing{crypto::Key::from_hex(test_key, "the test"), {}},
                            queue::Actions::built_in().signed_paths());
  const auto value_of = [](std::string_view text, std::string_view key) {
    const auto at = text.find(key);
    if (at == std::string_view::npos) throw std::runtime_error("a token is incomplete");
    const auto value = text.substr(at + key.size());
    return value.substr(0, value.find('"'));
  };
  const auto complete = std::string_view(output).substr(0, output.rfind('\n') + 1);
  for_each_emitted(complete, [&](std::int64_t id, std::string_view rest) {
    const auto decoded = crypto::decode_token(value_of(rest, "\"token\":\""));
    if (!decoded || !verifier.verify(*decoded, value_of(rest, "\"code\":\""), false))
      throw std::runtime_error("a token does not verify");
    ++ids[id];
  });
  return ids;
}

}  // namespace mailroom::test
