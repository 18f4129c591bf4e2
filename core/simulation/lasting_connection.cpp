// Tries every 100 ms, until it connects, is told to end, or runs out of patience.

#include "simulation/lasting_connection.hpp"

#include <thread>

namespace mailroom {

void LastingConnection::connect_again(const ConnectionLost& loss) {
  constexpr Milliseconds pause{100};
  constexpr Milliseconds slice{10};
  const auto give_up = steady_now() + ways_.patience;
  ways_.lost(loss.what());
  do {
    for (auto slept = Milliseconds::zero(); slept < pause; slept += slice) {
      if (!ways_.go_on()) throw loss;
      std::this_thread::sleep_for(slice);
    }
    try {
      connection_ = ways_.connect();
      return ways_.back();
    } catch (const ConnectionLost&) {
      // The caller reports the first loss.
      continue;
    }
  } while (steady_now() < give_up);
  throw loss;
}

}  // namespace mailroom
