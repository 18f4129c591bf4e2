// Traces from the statement of an application to the spans at a collector of traces.

#include <fmt/format.h>

#include "integration/trace_rig.hpp"
#include "support/test_role.hpp"
#include "trace/traceparent.hpp"

namespace mailroom::test::trace_test {

TEST_CASE("the trace of a statement goes with its mail to the answer of the relay and to the bounce") {
  TraceRig rig;
  insert_message(*rig.connection, R"({"traceparent": ")" + traceparent + "\"}");
  rig.send();
  for (const auto* name : {"enqueue", "render", "carry"}) {
    const auto span = rig.span(name);
    CAPTURE(name, plain_json(span));
    CHECK(span["traceId"] == trace_id);
    CHECK(span["parentSpanId"] == parent_id);
    CHECK(attribute(span, "messaging.system") == "mailroom");
    CHECK(attribute(span, "messaging.destination.name") == "mailroom");
    CHECK(attribute(span, "messaging.message.id") == "message:1");
    CHECK(attribute(span, "mailroom.token") == "1");
  }
  const auto carry = rig.span("carry");
  CHECK(carry["kind"] == 5);
  CHECK(attribute(carry, "mailroom.outcome") == "accepted");
  CHECK(attribute(carry, "mailroom.code") == "250");
  CHECK(attribute(carry, "server.address") == "127.0.0.1");
  CHECK(rig.span("enqueue")["kind"] == 4);
  const auto claim = rig.span("claim");
  CHECK(claim["links"][0]["traceId"] == trace_id);
  CHECK(attribute(claim, "messaging.batch.message_count") == "1");
  const auto report = [&](const std::string& to) {
    return "From: MAILER-DAEMON@mx.example\r\nTo: " + to +
           "\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\n"
           "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n"
           "--b\r\nContent-Type: text/plain\r\n\r\nsorry\r\n"
           "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\n"
           "Final-Recipient: rfc822; ada@mail.example\r\nAction: failed\r\nStatus: 5.1.1\r\n"
           "Diagnostic-Code: smtp; 550 5.1.1 User unknown\r\n\r\n--b--\r\n";
  };
  const auto mail = report(rig.relay.taken().back().from);
  rig.read(mail);
  rig.read(mail);
  const auto bounce = rig.span("bounce");
  CHECK(bounce["traceId"] == trace_id);
  CHECK(bounce["parentSpanId"] == parent_id);
  CHECK(attribute(bounce, "mailroom.outcome") == "hard");
  CHECK(bounce["status"]["code"] == 2);
  const auto said = rig.run({"audit", "message:1"}).output;
  CHECK(said.find("  trace " + trace_id + "\n") != std::string::npos);
  CHECK(rig.run({"audit", "message:1", "-o", "json"}).output.find("\"trace_id\":\"" + trace_id) !=
        std::string::npos);
  CHECK(rig.run({"audit", "--stages"}).output.find(trace_id) != std::string::npos);
}

TEST_CASE("a trace comes by option, column, setting of the transaction, and the row of a trigger") {
  TraceRig rig;
  auto& connection = *rig.connection;
  const auto stored =
      "SELECT coalesce(string_agg(traceparent, ' ' ORDER BY id), 'none') FROM tokens WHERE id > ";
  const auto other = "00-11112222333344445555666677778888-1111222233334444-00";
  SECTION("the option goes before the setting, and each recipient has it") {
    connection.run(fmt::format(
        "BEGIN; SET LOCAL mailroom.traceparent = '{}'; SELECT mailroom_send(ARRAY['a@x.example', 'b@x.example'], "
        "subject => 'x', text => 'y', options => '{{\"traceparent\": \"{}\"}}'); COMMIT",
        other, traceparent));
    CHECK(rig.column(stored + std::string("0")) == traceparent + " " + traceparent);
  }
  SECTION("an INSERT of messages, of tokens and of accounts") {
    connection.run(fmt::format(
        "BEGIN; SET LOCAL mailroom.traceparent = '{}'; "
        "INSERT INTO mailroom_messages (recipients, subject, text) VALUES (ARRAY['a@x.example'], 'x', 'y'); "
        "INSERT INTO accounts (email, login) VALUES ('b@x.example', 'b'); COMMIT; "
        "INSERT INTO mailroom_messages (recipients, subject, text, options) VALUES (ARRAY['a@x.example'], 'x', 'y', "
        "'{{\"notify\": true, \"traceparent\": \"{}\"}}'); "
        "INSERT INTO tokens (account, action, traceparent) VALUES (1, 'password_recovery', '{}')",
        other, traceparent, traceparent));
    CHECK(rig.column(stored + std::string("0")) ==
          other + std::string(" ") + other + " " + traceparent + " " + traceparent);
    CHECK(rig.column("SELECT options::text FROM mailroom_messages WHERE id = 2").find("\"notify\": true") !=
          std::string::npos);
  }
  SECTION("scheduled messages keep it until their time") {
    connection.run(fmt::format(
        "BEGIN; SET LOCAL mailroom.traceparent = '{}'; SELECT mailroom_send(ARRAY['a@x.example'], subject => 'x', "
        "text => 'y', send_after => now() + interval '1 hour'); COMMIT",
        traceparent));
    connection.run(fmt::format(
        "BEGIN; SET LOCAL mailroom.traceparent = '{}'; INSERT INTO mailroom_messages (recipients, subject, text, send_after, options) "
        "VALUES (ARRAY['a@x.example'], 'x', 'y', now() + interval '1 hour', '{{\"notify\": true}}'), "
        "(ARRAY['a@x.example'], 'x', 'y', now() + interval '1 hour', '{{\"traceparent\": \"{}\"}}'); COMMIT",
        traceparent, other));
    connection.run("UPDATE mailroom_messages SET send_after = now()");
    CHECK(value<int>(connection, "SELECT released FROM mailroom_release(10)") == 3);
    CHECK(rig.column(stored + std::string("0")) == traceparent + " " + traceparent + " " + other);
    CHECK(value<int>(connection,
                     "SELECT count(*) FROM mailroom_messages WHERE options @> '{\"notify\": true}'") == 1);
  }
  SECTION("a row with a column traceparent, which is no data and no change; a malformed one is left out") {
    connection.run(fmt::format(
        "CREATE TABLE users (email text, name text, traceparent text); "
        "CREATE TRIGGER welcome AFTER INSERT OR UPDATE ON users FOR EACH ROW "
        "EXECUTE FUNCTION mailroom_send_row('welcome', 'email', '', 'name', 'traceparent'); "
        "INSERT INTO users VALUES ('a@x.example', 'Ada', '{}'), ('b@x.example', 'Bob', 'nonsense'); "
        "UPDATE users SET traceparent = '{}'",
        traceparent, other));
    CHECK(rig.column("SELECT string_agg(coalesce(traceparent, 'none'), ' ' ORDER BY id) FROM tokens") ==
          traceparent + " none");
    CHECK(rig.column("SELECT data::text FROM mailroom_messages WHERE id = 1") == R"({"name": "Ada"})");
  }
  SECTION("without one there is none, and a setting that is none stops nobody") {
    connection.run(
        "BEGIN; SET LOCAL mailroom.traceparent = 'it''s; DROP TABLE tokens'; "
        "SELECT mailroom_send(ARRAY['a@x.example'], subject => 'x', text => 'y', options => '{\"traceparent\": null}'); "
        "INSERT INTO accounts (email, login) VALUES ('b@x.example', 'b'); COMMIT; "
        "SELECT mailroom_send(ARRAY['a@x.example'], subject => 'x', text => 'y')");
    CHECK(rig.column(stored + std::string("0")) == "none");
    CHECK(value<int>(connection, "SELECT count(*) FROM tokens") == 3);
    CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages WHERE options IS NOT NULL") == 0);
  }
}

TEST_CASE(
    "a traceparent that somebody writes and that is none is refused, and the database agrees with the program") {
  TraceRig rig;
  for (const std::string text : {"x", "00-0-0-01", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                 "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                 "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                                 "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                                 "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
                                 "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
                                 "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
                                 "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n",
                                 "42-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}) {
    CAPTURE(text);
    const auto known = rig.connection->run("SELECT mailroom_traceparent($1)", text);
    CHECK(!known[0][0].is_null() == trace::parse_traceparent(text).has_value());
    if (!known[0][0].is_null()) {
      CHECK(trace::parse_traceparent(known[0][0].c_str()) == trace::parse_traceparent(text));
      CHECK(std::string(known[0][0].c_str()).size() == 55);
      continue;
    }
    try {
      insert_message(*rig.connection, plain_json(SpanJson{{"traceparent", text}}));
      FAIL("it was taken");
    } catch (const db::DatabaseError& error) {
      CHECK(std::string(error.what()).find("the traceparent \"") != std::string::npos);
    }
  }
  CHECK_THROWS_AS(insert_message(*rig.connection, R"({"traceparent": 17})"), db::DatabaseError);
  CHECK_THROWS_AS(insert_message(*rig.connection, R"({"traceparents": null})"), db::DatabaseError);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM tokens") == 0);
}

TEST_CASE("a later attempt is a trace of its own with a link, whichever process makes it") {
  TraceRig rig;
  TestRelay deferring({.play = TestRelay::at(RelayStep::rcpt, RelayAnswer::reply("451 4.7.1 later"))});
  rig.environment["MAILROOM_SEND_RELAY"] = deferring.url();
  insert_message(*rig.connection, R"({"traceparent": ")" + traceparent + "\"}");
  rig.run({"send", "--once"});
  CHECK(rig.span("carry")["traceId"] == trace_id);
  CHECK(attribute(rig.span("carry"), "mailroom.outcome") == "deferred");
  CHECK(attribute(rig.span("carry"), "error.type") == "451");
  rig.environment["MAILROOM_SEND_RELAY"] = rig.relay.url();
  rig.connection->run("UPDATE mailroom_deliveries SET not_before = now() - interval '1 s'");
  rig.send();
  const auto carries = rig.spans("carry");
  REQUIRE(carries.size() == 2);
  CHECK(carries[1]["traceId"] != trace_id);
  CHECK_FALSE(carries[1].contains("parentSpanId"));
  CHECK(carries[1]["links"][0]["traceId"] == trace_id);
  CHECK(carries[1]["links"][0]["spanId"] == parent_id);
  CHECK(rig.spans("enqueue").size() == 1);
}

TEST_CASE("what the application does not record is not sent, and neither is what trace.sample leaves out") {
  TraceRig rig;
  rig.environment["MAILROOM_TRACE_SAMPLE"] = "0";
  insert_message(*rig.connection, R"({"traceparent": "00-)" + trace_id + "-" + parent_id + "-00\"}");
  insert_message(*rig.connection, "{}");
  rig.send();
  CHECK(rig.relay.taken().size() == 2);
  CHECK(rig.bytes().empty());
  insert_message(*rig.connection, R"({"traceparent": ")" + traceparent + "\"}");
  rig.send();
  CHECK(rig.spans().size() == 4);
}

TEST_CASE("no span has an address, a token, a code, content, or what a relay says") {
  TraceRig rig;
  rig.environment["MAILROOM_SEND_LINK"] = "https://app.example/?t={token}";
  auto& connection = *rig.connection;
  connection.run("INSERT INTO accounts (email, login) VALUES ('secretaddress@mail.example', 'secretlogin')");
  connection.run(
      "UPDATE accounts SET status = 'active'; INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
  connection.run(
      "SELECT mailroom_send(ARRAY['Secretname <secretaddress@mail.example>'], subject => 'secretsubject', text => 'secrettext', "
      "html => 'secrethtml', headers => '{\"X-Secretheader\": \"secretvalue\"}', reference => 'secretreference', "
      "idempotency_key => 'secretkey', options => $1::jsonb)",
      R"({"traceparent": ")" + traceparent + "\"}");
  TestRelay refusing(
      {.play = TestRelay::at(RelayStep::end,
                             RelayAnswer::reply("550 5.1.1 <secretaddress@mail.example> secretreply"))});
  rig.environment["MAILROOM_SEND_RELAY"] = refusing.url();
  rig.run({"send", "--once"});
  const auto bytes = rig.bytes();
  CHECK(rig.spans("carry").size() == 2);
  for (const std::string text : {"secret", "@", "mail.example", "app.example"}) {
    CAPTURE(text);
    CHECK(bytes.find(text) == std::string::npos);
  }
  for (const auto& row :
       connection.run("SELECT encode(secret, 'hex'), code FROM tokens WHERE secret IS NOT NULL")) {
    CHECK(bytes.find(row[0].c_str()) == std::string::npos);
    if (!row[1].is_null()) CHECK(bytes.find("\"" + std::string(row[1].c_str()) + "\"") == std::string::npos);
  }
}

TEST_CASE("no trace goes to a recipient") {
  TraceRig rig;
  insert_message(*rig.connection, R"({"traceparent": ")" + traceparent + "\"}");
  rig.send();
  REQUIRE(rig.relay.taken().size() == 1);
  for (const auto& part : {trace_id, parent_id, std::string("trace")})
    CHECK(rig.relay.taken().front().message.find(part) == std::string::npos);
}

TEST_CASE("a reader whose grants are older than the column gets the rest of the report") {
  TraceRig rig;
  insert_message(*rig.connection, R"({"traceparent": ")" + traceparent + "\"}");
  const TestRole reader(rig.database, "reader");
  rig.connection->run(fmt::format(
      "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {0}; GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO {0}; "
      "REVOKE SELECT ON tokens FROM {0}; "
      "GRANT SELECT (id, action, account, expires_at, consumed_at, created_at, message, recipient, xmin) ON tokens TO {0}; "
      "GRANT EXECUTE ON FUNCTION mailroom_message_status TO {0}",
      reader.name()));
  rig.environment["MAILROOM_DATABASE_URL"] = reader.conninfo();
  for (const bool may_read : {false, true}) {
    const auto said = rig.run({"audit", "message:1"});
    CAPTURE(may_read, said.output, said.errors);
    CHECK(said.status == 0);
    CHECK(said.output.find("token 1 ") != std::string::npos);
    CHECK((said.output.find(trace_id) != std::string::npos) == may_read);
    rig.connection->run("GRANT SELECT (traceparent) ON tokens TO " + reader.name());
  }
}

}  // namespace mailroom::test::trace_test
