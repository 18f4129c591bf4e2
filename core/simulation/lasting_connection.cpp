#include "simulation/lasting_connection.hpp"

#include <thread>

namespace mailroom {
namespace {

constexpr Milliseconds pause{100};
constexpr Milliseconds slice{10};

}  // namespace

void LastingConnection::prepare(const std::string& name, const std::string& sql) {
  prepared_[name] = sql;
  // After a reconnect the statement is already prepared.
  run([&](Connection& session) { session.prepare(name, sql); }, [](Connection&) {});
}

void LastingConnection::connect_again(const ConnectionLost& loss) {
  const auto give_up = std::chrono::steady_clock::now() + ways_.patience;
  ways_.lost(loss.what());
  do {
    for (auto slept = Milliseconds::zero(); slept < pause; slept += slice) {
      if (!ways_.go_on()) throw loss;
      std::this_thread::sleep_for(slice);
    }
    if (try_to_connect()) return ways_.back();
  } while (std::chrono::steady_clock::now() < give_up);
  throw loss;
}

bool LastingConnection::try_to_connect() {
  try {
    auto connection = ways_.connect();
    for (const auto& [name, sql] : prepared_)
      connection->prepare(name, sql);
    connection_ = std::move(connection);
    return true;
  } catch (const ConnectionLost&) {
    // The caller reports the first loss.
    return false;
  }
}

}  // namespace mailroom
