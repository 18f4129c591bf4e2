// What /proc says of the process of a consumer.

#include <unistd.h>

#include "status/collector_process.hpp"
#include "support/catch.hpp"

namespace mailroom::test::process_sight_test {

TEST_CASE("the state of a process stands after its name, which may contain anything") {
  CHECK(status::read_process_stat("77 (mailroom) S 1 77 77 0 -1") == status::ProcessSight::runs);
  CHECK(status::read_process_stat("77 (mailroom) R 1") == status::ProcessSight::runs);
  CHECK(status::read_process_stat("77 (mailroom) D 1") == status::ProcessSight::runs);
  CHECK(status::read_process_stat("77 (mailroom) T 1") == status::ProcessSight::stopped);
  CHECK(status::read_process_stat("77 (mailroom) t 1") == status::ProcessSight::stopped);
  CHECK(status::read_process_stat("77 (mailroom) Z 1") == status::ProcessSight::unknown);
  CHECK(status::read_process_stat("77 (a) T (b) S 1") == status::ProcessSight::unknown);
  CHECK(status::read_process_stat("77 (mailroom)") == status::ProcessSight::unknown);
  CHECK(status::read_process_stat("") == status::ProcessSight::unknown);
}

TEST_CASE("a process on another host, of another program, or that is gone is unknown") {
  CHECK(status::see_process("mailroom send root@elsewhere:1", "here") == status::ProcessSight::unknown);
  CHECK(status::see_process("mailroom send root@here:" + std::to_string(getpid()), "here") ==
        status::ProcessSight::unknown);
  CHECK(status::see_process("mailroom send root@here:4194305", "here") == status::ProcessSight::unknown);
  CHECK(status::see_process("psql", "here") == status::ProcessSight::unknown);
}

}  // namespace mailroom::test::process_sight_test
