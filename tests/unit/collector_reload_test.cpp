#include "consumer/collector.hpp"
#include "crypto/token.hpp"
#include "db/errors.hpp"
#include "support/catch.hpp"
#include "support/collector_rig.hpp"

namespace mailroom::test::collector_reload_test {

using namespace std::chrono_literals;
using test::Call;
using test::CollectorRig;
using test::FakeServer;
using test::ServerFault;
using test::ServerOperation;

namespace {

const std::string old_key(64, 'a');
const std::string new_key(64, 'c');

/// True if `key` has signed the line's first token.
bool is_signed_by(const nlohmann::json& line, const std::string& key) {
  crypto::Hmac hmac(crypto::Key::from_hex(key, "the test"));
  const auto token = crypto::decode_token(line.at("tokens").at(0).at("token").get<std::string>());
  return token && crypto::is_signed(hmac, *token, "/activate", {});
}

/// The setup of `rig`, but for another server.
consumer::CollectorSetup setup_for(CollectorRig& rig, FakeServer& other) {
  auto setup = rig.setup();
  setup.session_identity = "there";
  setup.connect = [&] { return other.connect(); };
  return setup;
}

void reload_at(CollectorRig& rig, Milliseconds since_start) {
  rig.environment.at(since_start, [&] { rig.environment.request_reload(); });
}

}  // namespace

TEST_CASE("a reload applies a new limit and a new key from the next batch on") {
  CollectorRig rig;
  rig.server.add_tokens(3);
  rig.reload = [&] { return rig.setup(2, new_key); };
  reload_at(rig, 1s);
  rig.environment.at(2s, [&] { rig.server.add_tokens(2); });
  rig.stop_at(3s);
  rig.run();
  const auto lines = rig.lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("tokens").size() == 3);
  CHECK(is_signed_by(lines[0], old_key));
  CHECK(lines[1].at("tokens").size() == 2);
  CHECK(is_signed_by(lines[1], new_key));
  CHECK_FALSE(is_signed_by(lines[1], old_key));
  CHECK(rig.logged("configuration reloaded"));
  CHECK(rig.server.open_batches() == 0);
}

TEST_CASE("a reload logs the changed settings and the key") {
  CollectorRig rig;
  rig.reload = [&] {
    auto setup = rig.setup(2, new_key);
    setup.changes = {{"collect.batch_limit", "3", "2"},
                     {"log.level", "info", "debug", false},
                     {.name = "templates", .before = {}, .after = {}, .content = "1 changed"}};
    return setup;
  };
  reload_at(rig, 1s);
  rig.stop_at(2s);
  rig.run();
  CHECK(rig.logged(" changed setting=collect.batch_limit from=3 to=2\n"));
  CHECK(rig.logged(" changed, effective after a restart setting=log.level from=info to=debug\n"));
  CHECK(
      rig.logged(" configuration reloaded changed=3 took=\"collect.batch_limit, log.level, "
                 "templates: 1 changed\" signing_key=" +
                 crypto::Key::from_hex(new_key, "the test").fingerprint() + "\n"));
}

TEST_CASE("a reload that fails is logged, and the old configuration stays") {
  CollectorRig rig;
  rig.reload = []() -> consumer::CollectorSetup {
    throw Error(ExitCode::configuration, "the limit is no number");
  };
  reload_at(rig, 1s);
  rig.environment.at(2s, [&] { rig.server.add_tokens(3); });
  rig.stop_at(3s);
  rig.run();
  REQUIRE(rig.lines().size() == 1);
  CHECK(is_signed_by(rig.lines()[0], old_key));
  CHECK(rig.logged("the limit is no number"));
  CHECK_FALSE(rig.logged("configuration reloaded"));
}

TEST_CASE("a reload with another server acknowledges on the old one and continues on the new one") {
  CollectorRig rig;
  FakeServer other(rig.environment);
  rig.server.add_tokens(3);
  rig.reload = [&] { return setup_for(rig, other); };
  reload_at(rig, 1s);
  other.add_tokens(2);
  rig.stop_at(5s);
  rig.run();
  CHECK(rig.server.open_batches() == 0);
  CHECK(other.waiting() == 0);
  CHECK(other.open_batches() == 0);
  CHECK(rig.lines().size() == 2);
}

TEST_CASE("a reload is applied during an outage, which it may fix") {
  CollectorRig rig;
  FakeServer other(rig.environment);
  rig.reload = [&] { return setup_for(rig, other); };
  rig.environment.at(1s, [&] { rig.server.go_away(1h); });
  reload_at(rig, 2s);
  other.add_tokens(3);
  rig.stop_at(20s);
  rig.run();
  CHECK(other.waiting() == 0);
  CHECK(rig.lines().size() == 1);
}

TEST_CASE(
    "a reload with another server is applied even if the last batch cannot be acknowledged on the old one") {
  CollectorRig rig;
  FakeServer other(rig.environment);
  rig.server.add_tokens(3);
  rig.server.on_call = [&](const Call& call) {
    if (call.operation == ServerOperation::fetch) rig.environment.request_reload();
    return ServerFault::none;
  };
  rig.reload = [&] {
    rig.server.go_away(1h);
    return setup_for(rig, other);
  };
  other.add_tokens(3);
  rig.stop_at(60s);
  rig.run();
  CHECK(other.waiting() == 0);
  CHECK(rig.lines().size() == 2);
}

}  // namespace mailroom::test::collector_reload_test
