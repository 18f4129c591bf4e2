#include "adaptive/arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace mailroom::test {
namespace {

using Random = std::mt19937_64;
using Micros = std::chrono::microseconds;

/// In [0, 1): the same on every platform, unlike the distributions of the standard library.
double fraction(Random& random) {
  return static_cast<double>(random() >> 11) / 9007199254740992.0;
}

/// The time until the next token of a Poisson process, in seconds.
double poisson_gap(double rate, Random& random) {
  return -std::log(1 - fraction(random)) / rate;
}

Micros micros(double seconds) {
  return Micros(std::llround(seconds * 1e6));
}

Arrivals poisson(double rate, double from, double to, Random& random) {
  Arrivals arrivals;
  for (double time = from + poisson_gap(rate, random); time < to; time += poisson_gap(rate, random))
    arrivals.push_back(micros(time));
  return arrivals;
}

Arrivals constant_arrivals(std::uint64_t seed) {
  Random random(seed);
  const double phase = fraction(random);
  Arrivals arrivals;
  for (int i = 0; i < 4000; ++i)
    arrivals.push_back(micros((phase + i) / 20));
  return arrivals;
}

Arrivals poisson_arrivals(std::uint64_t seed) {
  Random random(seed);
  return poisson(20, 0, 200, random);
}

/// Thins a Poisson process of the highest rate.
Arrivals daily_wave(std::uint64_t seed) {
  constexpr double day = 1200;
  Random random(seed);
  auto arrivals = poisson(20, 0, day, random);
  std::erase_if(arrivals, [&](Micros time) {
    const double at = static_cast<double>(time.count()) / 1e6;
    const double height = (1 - std::cos(2 * std::numbers::pi * at / day)) / 2;
    return fraction(random) > 0.02 + 0.98 * height * height;
  });
  return arrivals;
}

Arrivals bursts(std::uint64_t seed) {
  constexpr double between = 300;
  Random random(seed);
  auto arrivals = poisson(0.2, 0, 4 * between, random);
  for (int burst = 0; burst < 4; ++burst) {
    const double from = between * (burst + 0.25 + fraction(random) / 2);
    for (int i = 0; i < 1000; ++i)
      arrivals.push_back(micros(from + fraction(random)));
  }
  std::ranges::sort(arrivals);
  return arrivals;
}

}  // namespace

const std::vector<ArrivalKind>& arrival_kinds() {
  static const std::vector<ArrivalKind> kinds{
      {"constant", "20 tokens/s", constant_arrivals},
      {"Poisson", "20 tokens/s on average", poisson_arrivals},
      {"daily wave", "0.4 to 20 tokens/s, a day in 20 min", daily_wave},
      {"bursts", "1,000 tokens within 1 s every 5 min, else 0.2 tokens/s", bursts}};
  return kinds;
}

}  // namespace mailroom::test
