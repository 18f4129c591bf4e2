#pragma once

#include <cstdint>
#include <map>
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

/// Counts how often each token id occurs in the jsonl `output`. Throws for a line that does not parse or a
/// token that does not verify; ignores a last line without a newline.
std::map<std::int64_t, int> emitted_ids(const std::string& output);

}  // namespace mailroom::test
