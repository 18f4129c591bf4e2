// `collect --to amqp://…` as users run it; the queue is the judge.
#include "broker/killed_collectors.hpp"
#include "broker/rabbitmq_rig.hpp"
#include "support/catch.hpp"

namespace mailroom::test::rabbitmq_collect_test {
namespace {

std::map<std::string, std::string> environment_of(const config::Settings& settings) {
  return {{"MAILROOM_SINK_PASSWORD_FILE", settings.sink.password_file},
          {"MAILROOM_SINK_ROUTING_KEY", settings.sink.routing_key}};
}

}  // namespace

TEST_CASE("collect hands each token over to RabbitMQ once, and records it", "[collect]") {
  RabbitmqRig rig;
  HandedOver handed(rig.settings.sink.to, environment_of(rig.settings));
  insert_accounts(*handed.database.connect(), 205);
  CHECK(handed.collect_once() == "");
  CHECK(rig.read().size() == 21);
  CHECK(handed.wrong(emitted_ids(rig.reader.lines()), true) == 0);
  CHECK(handed.accepted() == 205);
}

TEST_CASE("collectors that are killed lose no token, and RabbitMQ has each under one message id",
          "[collect]") {
  RabbitmqRig rig;
  HandedOver handed(rig.settings.sink.to, environment_of(rig.settings));
  CHECK(handed.collect_with_kills(100) == "");
  const auto messages = rig.read();
  CHECK(handed.wrong(emitted_ids(rig.reader.lines()), false) == 0);
  CHECK(handed.tokens() > 1000);
  // A reader that drops message ids that it has had takes each token once.
  CHECK(handed.wrong(emitted_ids(rig.reader.lines_once()), true) == 0);
}

}  // namespace mailroom::test::rabbitmq_collect_test
