// TLS and logins, what doctor sees and prints, and full disks.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

#include "broker/rabbitmq_rig.hpp"
#include "support/catch.hpp"
#include "support/code_blocks.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::rabbitmq_special_test {

using namespace std::chrono_literals;

namespace {

/// Runs commands as an operator on a server types them, in a directory of their own.
class Typed {
 public:
  Typed() {
    directory_.write("rabbitmqctl",
                     "#!/bin/sh\nexec '" + from_script("MAILROOM_TEST_RABBITMQ_DIRECTORY") + "/ctl' \"$@\"\n",
                     0700);
  }
  std::string file(const std::string& name) const { return directory_.path() / name; }
  void run(const std::string& commands) const {
    INFO(commands);
    Subprocess shell(
        {"/bin/sh", "-euc", "cd '" + directory_.path().string() + "'; PATH=.:$PATH; " + commands}, {},
        file("output"), file("errors"));
    const int status = shell.wait();
    INFO(read_file(file("output")) << read_file(file("errors")));
    CHECK(status == 0);
  }

 private:
  TemporaryDirectory directory_;
};

void run_fix(const Typed& typed, const carriers::SinkFinding& finding) {
  CHECK_FALSE(finding.fix.empty());
  for (const auto& command : finding.fix) {
    CHECK(command.kind() == status::FixKind::import_definitions);
    typed.run(command);
  }
}

}  // namespace

TEST_CASE("doctor's fixes make a queue as it should be, as typed") {
  RabbitmqRig rig;
  const Typed typed;
  const auto is_quorum = [&] {
    return amqp::check_amqp(rig.settings)[3].reason.find("is a quorum queue") != std::string::npos;
  };
  for (const bool is_durable : {true, false}) {
    rig.reader.make_queue(rig.queue, false, is_durable);
    run_fix(typed, amqp::check_amqp(rig.settings)[3]);
    CHECK(eventually(is_quorum));
  }
  rig.reader.drop_queue(rig.queue);
  run_fix(typed, amqp::check_amqp(rig.settings)[3]);
  CHECK(eventually(is_quorum));
  rig.settings.sink.routing_key = rig.queue + " of Ann's";
  run_fix(typed, amqp::check_amqp(rig.settings)[3]);
  CHECK(eventually(is_quorum));
  rig.reader.drop_queue(rig.settings.sink.routing_key);
}

TEST_CASE("docs/rabbitmq.md makes a queue, and a user who can do what mailroom needs") {
  RabbitmqRig rig;
  const Typed typed;
  const auto commands = code_block("docs/rabbitmq.md", "sh", "import_definitions");
  CHECK(commands.find("add_user") != std::string::npos);
  typed.run(commands);
  rig.settings.sink.routing_key = "{queue}";
  rig.settings.sink.to.replace(7, rig.settings.sink.to.find('@') - 7, "mailroom");
  rig.settings.sink.password_file = typed.file("rabbitmq-password");
  CHECK(eventually([&] { return amqp::check_amqp(rig.settings).size() == 4; }));
  const auto findings = amqp::check_amqp(rig.settings);
  for (const auto& finding : findings)
    CHECK(finding.level == carriers::SinkFinding::Level::fine);
  CHECK(lacking(findings[3].reason, {"the queue mailroom is a quorum queue"}) == std::vector<std::string>());
  auto lines = make_lines(100);
  hand_over(*rig.carrier(), lines);
  require_each_once(lines, rig.reader.read("mailroom"));
  rig.reader.drop_queue("mailroom");
}

TEST_CASE("servers with full disks make lines wait; restarted with room, they have each line", "[disk]") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  auto before = make_lines(100);
  hand_over(*carrier, before);
  keep_rabbitmq_definitions();
  const auto data = from_script("MAILROOM_TEST_RABBITMQ_DIRECTORY") + "/data";
  fill_disk(data);
  auto lines = make_lines(2000, 10, "full.");
  Answered answered;
  {
    const Fault relief([&] { return answered.waiting > 0; },
                       [&] {
                         for (const int node : {1, 2, 3})
                           rig.nodes.kill(node);
                         std::filesystem::remove(data + "/ballast");
                         rig.restore();
                       });
    hand_over(*carrier, lines, &answered);
  }
  CHECK(std::ranges::none_of(lines, &TestLine::rejected));
  lines.insert(lines.end(), before.begin(), before.end());
  require_each(lines, rig.read());
}

TEST_CASE("a server that is low on disk makes lines wait, and takes them afterwards") {
  RabbitmqRig rig;
  const auto carrier = rig.carrier();
  auto lines = make_lines(2000);
  const auto need = [](const std::string& free) {
    rabbitmqctl("eval 'rpc:multicall(rabbit_disk_monitor, set_disk_free_limit, [\"" + free + "\"]).'");
  };
  need("100000GB");
  Answered answered;
  {
    const Fault relief([&] { return answered.waiting > 0; }, [&] { need("50MB"); });
    hand_over(*carrier, lines, &answered);
  }
  require_each_once_unless_unknown(lines, rig.read());
}

TEST_CASE("lines go over TLS; another name, an unknown authority and a wrong password are refused") {
  RabbitmqRig rig;
  rig.settings.sink.to = from_script("MAILROOM_TEST_RABBITMQ_TLS");
  rig.settings.sink.ca_file = from_script("MAILROOM_TEST_RABBITMQ_CA");
  const auto good = rig.settings;
  {
    const auto carrier = rig.carrier();
    auto lines = make_lines(300);
    hand_over(*carrier, lines);
    require_each_once(lines, rig.read());
  }
  replace_all(rig.settings.sink.to, "localhost", "127.0.0.1");
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"has a certificate that is not accepted"}) ==
        std::vector<std::string>());
  rig.settings = good;
  rig.settings.sink.ca_file.clear();
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"has a certificate that is not accepted",
                                                     "set sink.ca_file"}) == std::vector<std::string>());
  const TemporaryDirectory directory;
  const auto file = (directory.path() / "password").string();
  std::ofstream(file) << "wrong-password\n";
  chmod(file.c_str(), 0600);
  rig.settings = good;
  rig.settings.sink.password_file = file;
  const auto refusal = refusal_of([&] { rig.carrier(); });
  CHECK(lacking(refusal, {"does not let mailroom in", "ACCESS_REFUSED"}) == std::vector<std::string>());
  CHECK(refusal.find("wrong-password") == std::string::npos);
  rig.settings.sink.to = good.sink.to + "/nowhere";
  rig.settings.sink.password_file = good.sink.password_file;
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"does not let mailroom in", "nowhere"}) ==
        std::vector<std::string>());
}

TEST_CASE("doctor looks at servers and queue") {
  RabbitmqRig rig;
  auto findings = amqp::check_amqp(rig.settings);
  REQUIRE(findings.size() == 4);
  CHECK(lacking(findings[0].reason, {"takes connections, RabbitMQ "}) == std::vector<std::string>());
  CHECK(findings[3].level == carriers::SinkFinding::Level::fine);
  CHECK(lacking(findings[3].reason, {"the queue " + rig.queue + " is a quorum queue"}) ==
        std::vector<std::string>());
  rig.reader.make_queue(rig.queue, false);
  findings = amqp::check_amqp(rig.settings);
  CHECK(findings[3].level == carriers::SinkFinding::Level::warning);
  CHECK(lacking(findings[3].reason, {"is no quorum queue"}) == std::vector<std::string>());
  rig.reader.make_queue(rig.queue, false, false);
  findings = amqp::check_amqp(rig.settings);
  CHECK(lacking(findings[3].reason, {"is not durable"}) == std::vector<std::string>());
  rig.reader.drop_queue(rig.queue);
  findings = amqp::check_amqp(rig.settings);
  CHECK(findings[3].level == carriers::SinkFinding::Level::failure);
  CHECK(findings[3].reason == "there is no queue " + rig.queue);
}

}  // namespace mailroom::test::rabbitmq_special_test
