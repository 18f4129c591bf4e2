// A collector of traces that is down, slow or hostile, and none at all.

#include <chrono>

#include "base/clock.hpp"
#include "integration/trace_rig.hpp"
#include "support/refusing_port.hpp"

namespace mailroom::test::trace_endpoint_test {

TEST_CASE(
    "a collector of traces that does not take spans costs no mail and no more than seconds at the end") {
  struct Row {
    std::string mode;
    bool takes;
  };
  const auto row = GENERATE(Row{"ok", true}, Row{"limits", true}, Row{"big", true}, Row{"429", false},
                            Row{"503", false}, Row{"400", false}, Row{"redirect", false}, Row{"slow", true},
                            Row{"silent", false}, Row{"down", false});
  CAPTURE(row.mode);
  TraceRig rig(row.mode == "down" ? "ok" : row.mode);
  const RefusingPort nobody;
  if (row.mode == "down")
    rig.environment["MAILROOM_TRACE_ENDPOINT"] = "http://127.0.0.1:" + std::to_string(nobody.port());
  constexpr int mails = 30;
  rig.connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text) SELECT ARRAY['u' || n || '@mail.example'], 'x', 'y' "
      "FROM generate_series(1, 30) n");
  const auto began = steady_now();
  const auto sent = rig.run({"send", "--once"});
  const auto took = steady_now() - began;
  INFO(sent.errors);
  CHECK(sent.status == 0);
  CHECK(rig.relay.taken().size() == mails);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted'") ==
        mails);
  CHECK(took < std::chrono::seconds(20));
  CHECK(rig.bytes().empty() != row.takes);
  const bool warns = sent.errors.find("the collector of traces takes no spans") != std::string::npos;
  CHECK(warns == (row.mode != "ok" && row.mode != "big"));
}

TEST_CASE("without an endpoint nothing is traced, and one that cannot be is refused") {
  TraceRig rig;
  rig.environment.erase("MAILROOM_TRACE_ENDPOINT");
  insert_message(*rig.connection, R"({"traceparent": ")" + traceparent + "\"}");
  const auto sent = rig.send();
  CHECK(sent.errors.find("trace") == std::string::npos);
  CHECK(rig.bytes().empty());
  rig.environment["MAILROOM_TRACE_ENDPOINT"] = "ftp://traces.example";
  CHECK(rig.run({"send", "--once"}).status == 3);
}

}  // namespace mailroom::test::trace_endpoint_test
