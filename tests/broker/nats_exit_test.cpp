// The threads of libnats go on while the process exits.
#include <cstdlib>
#include <malloc.h>

#include "broker/nats_rig.hpp"
#include "carriers/nats/connection.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::nats_exit_test {
namespace {

class DeafListener final : public nats::NatsListener {
 public:
  void on_answer(const natsMsg*, const jsPubAck*, const jsPubAckErr*) override {}
  void on_lost(std::string) override {}
  void on_back() override {}
  void on_closed(std::string) override {}
  void on_refused(std::string) override {}
};

/// Outlives every static object that is made after it.
nats::NatsConnection* late = nullptr;

}  // namespace

TEST_CASE("the process that exits before its connection is closed", "[.exiting]") {
#if !defined(MAILROOM_SANITIZED)
  // What is freed does not look valid. AddressSanitizer, which has an allocator of its own, reports the use
  // itself.
  REQUIRE(mallopt(M_PERTURB, 0x5a) == 1);
#endif
  // Runs after the objects that open() makes have been destroyed, as a callback may.
  REQUIRE(std::atexit([] { delete late; }) == 0);
  DeafListener listener;
  carriers::BrokerFailure failure;
  late = nats::NatsConnection::open(nats::read_nats_target(nats_settings()), &listener, failure).release();
  REQUIRE(late != nullptr);
  std::exit(0);
}

TEST_CASE("a connection may be closed while the process exits") {
  const TemporaryDirectory directory;
  Subprocess process({"/proc/self/exe", "[.exiting]"}, {}, directory.path() / "out",
                     directory.path() / "errors");
  CHECK(process.wait() == 0);
}

}  // namespace mailroom::test::nats_exit_test
