#include "simulation/simulation.hpp"

#include <string>

#include "support/catch.hpp"

namespace mailroom::test::simulation_test {
namespace {

constexpr TimePoint origin{};

}  // namespace

TEST_CASE("simulated names begin with the seed, and no seed's prefix begins with another's") {
  CHECK(simulation::simulated_prefix(0) == "sim-0-");
  CHECK(simulation::simulated_prefix(42) == "sim-42-");
  CHECK(simulation::simulated_prefix(18446744073709551615U) == "sim-18446744073709551615-");
  CHECK(simulation::simulated_prefix(42).substr(0, simulation::simulated_prefix(4).size()) !=
        simulation::simulated_prefix(4));
  CHECK(std::string(simulation::simulated_email_end).find(".example") != std::string::npos);
}

TEST_CASE("a share selects accounts evenly") {
  CHECK(simulation::selected_of(100'000'000, 0) == 0);
  CHECK(simulation::selected_of(100'000'000, 100) == 100'000'000);
  CHECK(simulation::selected_of(7, 25) == 1);
  CHECK(simulation::selected_of(8, 25) == 2);
  CHECK(simulation::selected_of(100'000'000, 0.001) == 1000);
}

TEST_CASE("accounts are evenly spaced at a rate") {
  struct Row {
    std::int64_t n;
    double rate;
    std::int64_t microseconds;
  };
  for (const auto& row : {Row{1, 10, 0}, Row{2, 10, 100'000}, Row{11, 10, 1'000'000}, Row{3, 0.5, 4'000'000},
                          Row{1'000'001, 1'000'000, 1'000'000}}) {
    CAPTURE(row.n, row.rate);
    const auto offset =
        std::chrono::round<std::chrono::microseconds>(simulation::due_at(origin, row.n, row.rate) - origin);
    CHECK(offset.count() == row.microseconds);
  }
  CHECK(simulation::due_at(origin, 100'000'000, 0.001) > simulation::due_at(origin, 1000, 0.001));
}

}  // namespace mailroom::test::simulation_test
