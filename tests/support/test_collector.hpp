#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "support/test_consumer.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

/// A real `mailroom collect`.
class TestCollector : public TestConsumer {
 public:
  TestCollector(const TestDatabase& database, const std::vector<std::string>& options,
                const std::map<std::string, std::string>& environment = {});
  TestCollector(const std::string& conninfo, const std::vector<std::string>& options,
                const std::map<std::string, std::string>& environment = {},
                const std::string& stdout_path = {});
};

/// The tokens in the jsonl `output`, in order. Throws for a line that does not parse; ignores a last line
/// without a newline.
std::vector<nlohmann::json> emitted_tokens(const std::string& output);

/// Counts how often each token id occurs among them. Throws for a token that does not verify.
std::map<std::int64_t, int> emitted_ids(const std::string& output);

}  // namespace mailroom::test
