// The hint of a failed connection follows from what the server, the pooler or libpq said.

#include "db/loss_hint.hpp"

#include "support/catch.hpp"

namespace mailroom::test::loss_hint_test {
namespace {

struct Case {
  const char* reason;
  const char* part;  ///< of the hint
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each reason that the server gives has its own hint") {
  const auto each = GENERATE(
      Case{"connection to server on socket \"/s\" failed: FATAL:  sorry, too many clients already",
           "max_connections"},
      Case{"FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
           "max_connections"},
      Case{"FATAL:  too many connections for role \"app\"", "limit of the role"},
      Case{"FATAL:  too many connections for database \"app\"", "limit of the role, the database"},
      Case{"FATAL: no more connections allowed (max_client_conn)", "the pooler"},
      Case{"FATAL:  password authentication failed for user \"app\"", "check the user, and the password"},
      Case{"connection to server at \"h\" (::1), port 5432 failed: fe_sendauth: no password supplied",
           "the password"},
      Case{"FATAL:  database \"app\" does not exist", "create the database"},
      Case{"FATAL:  role \"app\" does not exist", "create the role"},
      Case{"FATAL:  role \"app\" is not permitted to log in", "LOGIN"},
      Case{
          "FATAL:  no pg_hba.conf entry for host \"10.0.0.1\", user \"app\", database \"app\", no encryption",
          "sslmode=require"},
      Case{"FATAL:  no pg_hba.conf entry for host \"10.0.0.1\", user \"app\", database \"app\", SSL off",
           "sslmode=require"},
      Case{
          "FATAL:  no pg_hba.conf entry for host \"10.0.0.1\", user \"app\", database \"app\", SSL encryption",
          "to pg_hba.conf"},
      Case{
          "FATAL:  pg_hba.conf rejects connection for host \"[local]\", user \"app\", database \"app\", SSL encryption",
          "to pg_hba.conf"},
      Case{"FATAL:  Peer authentication failed for user \"app\"", "host=localhost"},
      Case{"failed: server does not support SSL, but SSL was required", "turn on ssl"},
      Case{"failed: root certificate file \"/root.crt\" does not exist", "sslrootcert"},
      Case{"failed: SSL error: certificate verify failed", "sslrootcert"},
      Case{"FATAL:  permission denied for database \"app\"; User does not have CONNECT privilege.",
           "CONNECT"},
      Case{"FATAL:  the database system is starting up", "has started"},
      Case{"failed: session is read-only", "primary"},
      Case{"could not translate host name \"h\" to address: Name or service not known", "host's name"},
      Case{"failed: timeout expired", "nothing answers"},
      Case{"failed: Connection refused; Is the server running on that host and accepting TCP/IP connections?",
           "start the server"},
      Case{
          "failed: No such file or directory; Is the server running locally and accepting connections on that socket?",
          "start the server"});
  CAPTURE(each.reason);
  CHECK(contains(db::hint_for_loss(each.reason), each.part));
}

TEST_CASE("of several servers the one that answered decides") {
  const std::string refused = "failed: Connection refused; Is the server running on that host?";
  const auto hint = db::hint_for_loss(refused + "; FATAL:  password authentication failed for user \"a\"");
  CHECK(contains(hint, "password"));
}

TEST_CASE("a loss that says nothing of the way out has the target alone as its hint") {
  CHECK(db::hint_for_loss("the session has ended").empty());
  CHECK(db::unreachable_hint(db::ConnectionLost("x"), "host=h") ==
        "tried: host=h; mailroom config show shows where that comes from");
  CHECK(db::unreachable_hint(db::ConnectionLost("x", "do this"), "password=p") ==
        "do this; tried: password=***; mailroom config show shows where that comes from");
}

}  // namespace mailroom::test::loss_hint_test
