// TLS and logins, with a cluster whose certificates are for the name localhost.
#include <cstdlib>
#include <fstream>
#include <sys/stat.h>

#include "broker/nats_rig.hpp"
#include "carriers/nats/connection.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::nats_secure_test {
namespace {

/// Settings that fit the cluster.
config::Settings secure_settings() {
  auto settings = nats_settings();
  settings.sink.to = "tls://mail%40room@" + settings.sink.to.substr(7);
  settings.sink.ca_file = from_script("MAILROOM_TEST_NATS_CA");
  settings.sink.password_file = from_script("MAILROOM_TEST_NATS_PASSWORD_FILE");
  return settings;
}

}  // namespace

TEST_CASE("lines go over TLS, with a login, to any of several servers", "[secure]") {
  NatsRig rig;
  rig.settings = secure_settings();
  hand_over_to_two_servers(rig);
}

TEST_CASE("a certificate of another name is refused, also where other servers are named by the first",
          "[secure]") {
  NatsRig rig;
  rig.settings = secure_settings();
  replace_all(rig.settings.sink.to, "localhost", "127.0.0.1");
  CHECK(lacking(refusal_of([&] { rig.carrier(); }),
                {"has a certificate that is not accepted", "IP address mismatch",
                 "name the server in sink.to as its certificate does"}) == std::vector<std::string>());
  // On this host TLS is not required, but where it is used it is verified.
  rig.settings.sink.to.replace(0, 3, "nats");
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"IP address mismatch"}) == std::vector<std::string>());
}

TEST_CASE("a certificate of an unknown authority is refused", "[secure]") {
  NatsRig rig;
  rig.settings = secure_settings();
  rig.settings.sink.ca_file.clear();
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"has a certificate that is not accepted",
                                                     "set sink.ca_file"}) == std::vector<std::string>());
}

TEST_CASE("the file of credentials is that of the service, if it has a copy", "[secure]") {
  const TemporaryDirectory own;
  const TemporaryDirectory service;
  auto settings = nats_settings();
  const std::string text = "-----BEGIN NATS USER JWT-----\n-----BEGIN USER NKEY SEED-----\n";
  settings.sink.credentials_file = own.write("mailroom.creds", text);
  CHECK(nats::read_nats_target(settings).credentials_file == settings.sink.credentials_file);
  const auto copy = service.write("mailroom_mailroom.creds", text, 0440);
  setenv("CREDENTIALS_DIRECTORY", service.path().c_str(), 1);
  const auto target = nats::read_nats_target(settings);
  unsetenv("CREDENTIALS_DIRECTORY");
  CHECK(target.credentials_file == copy);
}

TEST_CASE("a wrong password is refused, and not shown", "[secure]") {
  const TemporaryDirectory directory;
  const auto file = (directory.path() / "password").string();
  std::ofstream(file) << "wrong-password\n";
  chmod(file.c_str(), 0600);
  NatsRig rig;
  rig.settings = secure_settings();
  rig.settings.sink.password_file = file;
  const auto refusal = refusal_of([&] { rig.carrier(); });
  CHECK(lacking(refusal, {"does not let mailroom in: Authorization Violation",
                          "check the user in sink.to, and sink.password_file"}) ==
        std::vector<std::string>());
  CHECK(refusal.find("wrong-password") == std::string::npos);
  rig.settings = secure_settings();
  rig.settings.sink.to = "tls://" + nats_settings().sink.to.substr(7);
  CHECK(lacking(refusal_of([&] { rig.carrier(); }), {"does not let mailroom in"}) ==
        std::vector<std::string>());
}

}  // namespace mailroom::test::nats_secure_test
