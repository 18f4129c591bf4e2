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

TEST_CASE("a hosted collector of traces gets its headers, and doctor says whether it takes spans") {
  TraceRig rig("key");
  const auto doctor = [&] { return rig.run({"doctor", "-o", "json"}).output; };
  CHECK(doctor().find("takes no spans: it answers 401: it knows no key") != std::string::npos);
  SECTION("from a file") {
    rig.environment["MAILROOM_TRACE_HEADERS_FILE"] = rig.directory.write("headers", "X-Key: secret\n");
  }
  SECTION("from the variable of OpenTelemetry") {
    rig.environment["OTEL_EXPORTER_OTLP_HEADERS"] = "x-key=secret";
  }
  CHECK(doctor().find(" takes spans") != std::string::npos);
  rig.environment["MAILROOM_TRACE_ENVIRONMENT"] = "staging";
  insert_message(*rig.connection, "{}");
  CHECK(rig.send().status == 0);
  CHECK(rig.bytes().find("staging") != std::string::npos);
  CHECK(rig.bytes().find("service.instance.id") != std::string::npos);
}

TEST_CASE("doctor recognises the port of gRPC") {
  TraceRig rig("grpc");
  CHECK(rig.run({"doctor", "-o", "json"}).output.find("it speaks gRPC") != std::string::npos);
}

}  // namespace mailroom::test::trace_endpoint_test
