// The programs that tests start: tests must never signal any other process.

#include "support/subprocess.hpp"

#include <csignal>
#include <stdexcept>

#include "support/catch.hpp"

namespace mailroom::test::subprocess_test {

TEST_CASE("a program that has ended cannot be waited for again, nor signalled") {
  Subprocess program({"/bin/sh", "-c", "exit 3"}, {}, "/dev/null", "/dev/null");
  CHECK(program.wait() == 3);
  CHECK(program.pid() == -1);
  program.signal(SIGTERM);
  CHECK_THROWS_AS(program.wait(), std::logic_error);
}

TEST_CASE(
    "a program that is starting is asked to stop when it has a handler, and one that has ended is not waited for") {
  Subprocess starting({"/bin/sh", "-c", "sleep 0.2; trap 'exit 7' TERM; while :; do sleep 0.05; done"}, {},
                      "/dev/null", "/dev/null");
  starting.await_handler(SIGTERM);
  starting.signal(SIGTERM);
  CHECK(starting.wait() == 7);
  Subprocess ending({"/bin/true"}, {}, "/dev/null", "/dev/null");
  ending.await_handler(SIGTERM);
  CHECK(ending.wait() == 0);
}

TEST_CASE("a program that does not end in time is killed") {
  Subprocess program({"/bin/sleep", "60"}, {}, "/dev/null", "/dev/null");
  CHECK(program.wait(std::chrono::seconds(0)) == 128 + SIGKILL);
}

}  // namespace mailroom::test::subprocess_test
