// Which accounts a large batch asks for.

#include <cstdint>
#include <limits>
#include <vector>

#include "claim/batch_reader.hpp"
#include "support/catch.hpp"

namespace mailroom::test::accounts_condition_test {

TEST_CASE("accounts close together are read as a range, others as a list") {
  struct Case {
    std::vector<std::int64_t> ids;
    std::string condition;
  };
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  const std::vector<Case> cases{
      {{7}, "id >= 7 AND id <= 7"},
      {{1, 2, 3}, "id >= 1 AND id <= 3"},
      {{10, 15}, "id >= 10 AND id <= 15"},
      {{10, 16}, "id = ANY ((SELECT '{10,16}'::bigint[])::bigint[])"},
      {{1, 2, 11}, "id = ANY ((SELECT '{1,2,11}'::bigint[])::bigint[])"},
      {{1, 2, 3, 12}, "id >= 1 AND id <= 12"},
      {{1, largest}, "id = ANY ((SELECT '{1,9223372036854775807}'::bigint[])::bigint[])"},
      {{-largest, largest},
       "id = ANY ((SELECT '{-9223372036854775807,9223372036854775807}'::bigint[])::bigint[])"},
  };
  for (const auto& [ids, condition] : cases)
    CHECK(claim::accounts_condition(ids) == condition);
}

}  // namespace mailroom::test::accounts_condition_test
