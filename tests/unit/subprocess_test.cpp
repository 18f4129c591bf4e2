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

TEST_CASE("a program that does not end in time is killed") {
  Subprocess program({"/bin/sleep", "60"}, {}, "/dev/null", "/dev/null");
  CHECK(program.wait(std::chrono::seconds(0)) == 128 + SIGKILL);
}

}  // namespace mailroom::test::subprocess_test
