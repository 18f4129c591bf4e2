#pragma once

#include <array>
#include <cstdint>
#include <random>

namespace mailroom::test {

/// Draws by a seed, the same everywhere.
class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}

  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }
  int from(int low, int high) { return low + static_cast<int>(below(static_cast<unsigned>(high - low + 1))); }
  bool one_in(unsigned n) { return below(n) == 0; }
  template <typename T, std::size_t size>
  const T& of(const std::array<T, size>& choices) {
    return choices.at(below(size));
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace mailroom::test
