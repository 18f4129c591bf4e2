// Which accounts a large batch asks for.

#include <cstdint>
#include <limits>
#include <vector>

#include "claim/batch_reader.hpp"
#include "support/catch.hpp"

namespace mailroom::test::accounts_range_test {

TEST_CASE("accounts close together are read as a range, others as a list") {
  struct Case {
    std::vector<std::int64_t> ids;
    bool is_range;
  };
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  const std::vector<Case> cases{{{7}, true},           {{1, 2, 3}, true},           {{10, 15}, true},
                                {{10, 16}, false},     {{1, 2, 11}, false},         {{1, 2, 3, 12}, true},
                                {{1, largest}, false}, {{-largest, largest}, false}};
  for (const auto& [ids, is_range] : cases)
    CHECK(claim::is_range(ids) == is_range);
}

}  // namespace mailroom::test::accounts_range_test
