// Lines to a real JetStream cluster: what becomes of each, and of the stream.
#include <fmt/format.h>

#include "broker/nats_rig.hpp"
#include "support/carrier_contract.hpp"
#include "support/catch.hpp"
#include "support/code_blocks.hpp"
#include "support/refusing_port.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::nats_test {

using namespace std::chrono_literals;

TEST_CASE("JetStream stores each line once, with its id and header") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(500);
  hand_over(*carrier, lines);
  require_each_once(lines, rig.reader.read());
  CHECK(carrier->unfinished() == 0);
  CHECK(lines[0].answers.at(0).reply == "stream MAILROOM, sequence 1");
  CHECK(rig.settings.sink.to.find(lines[0].answers.at(0).sink) != std::string::npos);
  CHECK(
      rig.reader.first_header() ==
      "mailroom.mailroom.activation\nNats-Msg-Id: " + lines[0].message_id +
          "\nNats-Expected-Stream: MAILROOM\nContent-Type: application/json\nMailroom-Batch: 7\nMailroom-Attempt: "
          "1\nMailroom-Tokens: 3\n" +
          lines[0].body);
}

TEST_CASE("JetStream's carrier promises what every carrier does") {
  NatsRig rig;
  check_carrier("nats", *rig.carrier(), delivery::Verdict::accepted);
  const RefusingPort closed;
  rig.settings.sink.to = fmt::format("nats://127.0.0.1:{}", closed.port());
  check_carrier("nats", *rig.carrier(), delivery::Verdict::unavailable);
  const SilentPort silent;
  rig.settings.sink.to = fmt::format("nats://127.0.0.1:{}", silent.port());
  check_cancel("nats", *rig.carrier());
}

TEST_CASE("a line is a CloudEvent in binary mode where the settings name its source") {
  NatsRig rig;
  rig.settings.sink.event_source = "/mailroom";
  const auto line = make_lines(1)[0];
  CHECK(hand_over_once(*rig.carrier(), line).verdict == delivery::Verdict::accepted);
  CHECK(lacking(rig.reader.first_header(),
                {"\nce-specversion: 1.0\nce-id: " + line.message_id +
                 "\nce-source: /mailroom\nce-type: mailroom.activation\nce-subject: mailroom\nce-time: "
                 "2026-11-23T12:54:48Z\nce-datacontenttype: application/json\n"}) ==
        std::vector<std::string>());
}

TEST_CASE("JetStream recognises a line that it has") {
  NatsRig rig;
  const auto line = make_lines(1)[0];
  CHECK(hand_over_once(*rig.carrier(), line).reply == "stream MAILROOM, sequence 1");
  const auto again = hand_over_once(*rig.carrier(), line);
  CHECK(again.verdict == delivery::Verdict::accepted);
  CHECK(again.reply == "stream MAILROOM, sequence 1, duplicate");
  CHECK(rig.reader.read().size() == 1);
}

TEST_CASE("a stream that does not exist, or takes other subjects, is refused at the start") {
  NatsRig rig;
  rig.settings.sink.stream = "OTHER";
  CHECK(lacking(refusal_of([&] { rig.carrier(); }),
                {"there is no stream OTHER", "nats stream add OTHER --subjects 'mailroom.>'"}) ==
        std::vector<std::string>());
  rig.settings.sink.stream = "MAILROOM";
  rig.settings.sink.subject = "mails.{queue}";
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"the stream MAILROOM does not take mails.mailroom"}) ==
        std::vector<std::string>());
}

TEST_CASE("a stream that goes, and another that takes its subjects, make lines wait") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  const auto line = make_lines(1)[0];
  rig.reader.drop_stream("MAILROOM");
  const auto gone = hand_over_once(*carrier, line);
  CHECK(gone.verdict == delivery::Verdict::unavailable);
  CHECK(gone.code == 503);
  rig.reader.make_stream({.name = "OTHER"});
  // Until the new stream has its leader, nobody answers.
  delivery::Answer other;
  CHECK(eventually([&] {
    other = hand_over_once(*carrier, line);
    return other.code != 503;
  }));
  CHECK(other.verdict == delivery::Verdict::unavailable);
  CHECK(other.code == 10060);
  CHECK(rig.reader.read("OTHER").empty());
  rig.reader.drop_stream("OTHER");
}

TEST_CASE("a line that is too large is rejected, and the next one is not") {
  NatsRig rig({.max_message_size = 5000});
  const auto carrier = rig.carrier();
  auto line = make_lines(1)[0];
  // More than the stream takes, exactly what the server takes, and a byte more.
  for (const std::size_t size : {6000UL, 1048576UL - 230, 1048576UL, 3000000UL}) {
    line.body.assign(size, 'x');
    const auto answer = hand_over_once(*carrier, line);
    INFO(size << ": " << answer.reply);
    CHECK(answer.verdict == delivery::Verdict::rejected);
  }
  CHECK(hand_over_once(*carrier, make_lines(1)[0]).verdict == delivery::Verdict::accepted);
}

TEST_CASE("a line as large as the server takes is accepted") {
  NatsRig rig;
  const auto carrier = rig.carrier();
  auto line = make_lines(1)[0];
  line.body.assign(1048576, 'x');
  const auto refused = hand_over_once(*carrier, line);
  CHECK(refused.verdict == delivery::Verdict::rejected);
  // `1048999 bytes are more than the server takes, 1048576`
  const auto size = std::stoul(refused.reply);
  line.body.assign(1048576 - (size - 1048576), 'x');
  CHECK(hand_over_once(*carrier, line).verdict == delivery::Verdict::accepted);
}

TEST_CASE("a full stream makes lines wait") {
  NatsRig rig({.max_messages = 2});
  const auto carrier = rig.carrier();
  const auto lines = make_lines(3);
  CHECK(hand_over_once(*carrier, lines[0]).verdict == delivery::Verdict::accepted);
  CHECK(hand_over_once(*carrier, lines[1]).verdict == delivery::Verdict::accepted);
  const auto answer = hand_over_once(*carrier, lines[2]);
  CHECK(answer.verdict == delivery::Verdict::unavailable);
  CHECK(answer.reply == "maximum messages exceeded");
}

TEST_CASE("the stream is made as docs/nats.md does it without a tool") {
  NatsRig rig;
  rig.reader.drop_stream("MAILROOM");
  auto commands = code_block("docs/nats.md", "bash", "STREAM.CREATE");
  const auto port = rig.settings.sink.to.substr(rig.settings.sink.to.rfind(':') + 1);
  commands.replace(commands.find("4222"), 4, port);
  const TemporaryDirectory directory;
  Subprocess shell({"/bin/bash", "-euc", commands}, {}, directory.path() / "answer",
                   directory.path() / "errors");
  const int status = shell.wait();
  INFO(read_file(directory.path() / "errors"));
  CHECK(status == 0);
  CHECK(lacking(read_file(directory.path() / "answer"), {"\"num_replicas\":3"}) ==
        std::vector<std::string>());
  rig.reader.await_stream();
  const auto findings = nats::check_nats(rig.settings);
  CHECK(findings[3].reason == "the stream MAILROOM has 3 replicas, and recognises repetitions for 1h");
  auto lines = make_lines(100);
  hand_over(*rig.carrier(), lines);
  require_each_once(lines, rig.reader.read());
}

TEST_CASE("doctor looks at servers, stream and what an acknowledgement is worth") {
  NatsRig rig;
  rig.settings.sink.monitor = from_script("MAILROOM_TEST_NATS_MONITOR");
  auto findings = nats::check_nats(rig.settings);
  REQUIRE(findings.size() == 5);
  CHECK(lacking(findings[0].reason, {" takes connections, NATS 2."}) == std::vector<std::string>());
  CHECK(findings[3].reason == "the stream MAILROOM has 3 replicas, and recognises repetitions for 1h");
  CHECK(findings[4].level == carriers::SinkFinding::Level::warning);
  CHECK(lacking(findings[4].reason, {"in memory, not on disk"}) == std::vector<std::string>());

  rig.reader.make_stream(
      {.subjects = "mailroom.*.activation", .replicas = 1, .in_memory = true, .duplicate_window = 60s});
  findings = nats::check_nats(rig.settings);
  std::string text;
  for (const auto& finding : findings)
    text += finding.reason + "\n";
  CHECK(lacking(text, {"the stream MAILROOM does not take mailroom.mailroom.password_recovery, "
                       "mailroom.mailroom.mixed",
                       "has one replica", "is in memory",
                       "recognises repetitions for 1m, and tokens live for 15m"}) ==
        std::vector<std::string>());

  rig.reader.drop_stream("MAILROOM");
  findings = nats::check_nats(rig.settings);
  CHECK(findings.back().level == carriers::SinkFinding::Level::failure);
  CHECK(findings.back().reason == "sink.stream cannot be used: there is no stream MAILROOM");
}

}  // namespace mailroom::test::nats_test
