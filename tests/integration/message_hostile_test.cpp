// Messages with hostile values in every field that the database takes: each ends as a mail without a header
// of its own, or as an outcome with a reason, and the ordinary mail beside it is delivered.

#include <fmt/format.h>
#include <map>
#include <set>

#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/gmime_reader.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::message_hostile_test {
namespace {

/// A message to an address of its own: the arguments of mailroom_send() after the recipients, and the
/// outcome.
struct Hostile {
  std::string arguments;
  std::string outcome = "accepted";  ///< how state and reason begin, or the refusal
};

void write_templates(const TemporaryDirectory& templates) {
  templates.write("receipt.subject", "Order {{order}}");
  templates.write("receipt.txt", "{{order}}\n");
  templates.write("receipt.html", "<p>{{order}}</p>\n");
  templates.write("loop.subject", "Loop");
  templates.write("loop.txt", "{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{#a}}{{/a}}{{/a}}{{/a}}{{/a}}{{/a}}{{/a}}");
  templates.write("growing.subject", "Growing");
  templates.write("growing.txt", "{{#a}}{{#a}}{{#a}}{{text}}{{/a}}{{/a}}{{/a}}");
}

/// An object of JSON whose only member `name` has the value of this SQL.
std::string object_of(const std::string& name, const std::string& sql) {
  return fmt::format("data => jsonb_build_object('{}', {})", name, sql);
}

std::string receipt_of(const std::string& sql) {
  return "template => 'receipt', " + object_of("order", sql);
}

std::string sent_to(const std::string& address, const std::string& arguments) {
  return fmt::format("SELECT mailroom_send(ARRAY['{}'], {})", address, arguments);
}

std::vector<Hostile> hostile_content() {
  const std::string own = "text => 't', subject => ";
  return {
      {"subject => 's', text => E'.\\r\\n.\\r\\nQUIT\\r\\n\\r\\n.\\r\\nMAIL FROM:<x@evil.example>\\r\\n'"},
      {"subject => 's', text => E'\\r\\nX-Injected: 1\\r\\rX-Injected: 2\\n\\nX-Injected: 3'"},
      {"subject => 's', text => repeat('x', 100000)"},
      {"subject => 's', text => chr(1) || chr(27) || '[2J' || chr(8238) || chr(65279) || chr(57344)"},
      {"subject => 's', html => '<script>{{link}}</script>--=_0' || chr(8232)"},
      {"subject => 's', text => 't', html => repeat(E'\\r', 5000)"},
      {own + "'=?utf-8?q?=0D=0AX-Injected:_1?= {{{ {{/x}} ' || chr(8238) || '\\'"},
      {own + "repeat('ü', 300)"},
      {own + "repeat('x', 900)"},
      {own + "'a' || chr(8232) || 'X-Injected: 1' || chr(133) || 'X-Injected: 2'"},
      {"subject => '', text => ''"},
      {own + "'s', sender => '\"X-Injected: 1, <x\" <shop@brand.example>'"},
      {own + "'s', reply_to => '=?utf-8?q?=0D=0AX-Injected:_1?= <r@mail.example>'"},
      {own + "'s', headers => jsonb_build_object('X-A', repeat('x', 900), 'X-B', repeat('x ', 400), 'X-C', "
             "'=?utf-8?q?=0D=0AX-Injected:_1?=')"},
      {own +
       "'s', headers => jsonb_build_object('X-A', 'ü' || chr(8232) || 'X-Injected: 1' || chr(133) || 'X-Injected: 2')"},
      {own + "'s', headers => '{\"List-Help\": \"<https://x.example/ü>\"}'",
       "23514 the header \"List-Help\" is not a text of printable ASCII"},
      {own + "'s', headers => (SELECT jsonb_object_agg('X-' || n, 'x') FROM generate_series(1, 20) n)"},
      {own + "'s', reference => '{{{' || chr(8238) || '<x>', profile => NULL, locale => '../../etc/passwd'"},
      {own +
       "'s', attachments => '[{\"name\": \"..\", \"content\": \"\"}, {\"name\": \"a\\\"; x=\\\"b\", "
       "\"content_type\": \"text/html; charset=\\\"x,y\\\"\", \"content\": \"DQpYLUluamVjdGVkOiAxDQo=\"}]'"},
      {own +
       "'s', attachments => jsonb_build_array(jsonb_build_object('name', repeat('ü', 120), 'content_type', "
       "'text/rfc822-headers', 'content', encode(convert_to(E'X-Injected: 1\\r\\n\\r\\n.\\r\\n', 'UTF8'), 'base64')))"},
      {own + "'s', attachments => jsonb_build_array(jsonb_build_object('name', 'big', 'content', "
             "encode(convert_to(repeat('c', 10485760), 'UTF8'), 'base64')))",
       "rejected the mail has "},
      {"subject => 's', text => repeat('x', 10485760)", "rejected the mail has "},
      {own + "'s', profile => '{{{' || chr(8238)", "deferred there is no profile {{{"},
  };
}

std::vector<Hostile> hostile_data() {
  return {
      {receipt_of("E'1\\r\\nX-Injected: 1'"), "rejected "},
      {receipt_of("'{{link}} {{{ {{=<% %>=}} {{> receipt}} {{/x}}'")},
      {receipt_of("'<script>&\"''</script>'")},
      {receipt_of("'=?utf-8?q?=0D=0AX-Injected:_1?='")},
      {receipt_of("repeat('x', 3000000)"), "23514 data has 3000013 octets, at most 1048576 are allowed"},
      {receipt_of("'[]'::jsonb"), "rejected receipt"},
      {receipt_of("'{\"order\": 1}'::jsonb"), "rejected receipt"},
      {receipt_of("'1e999999'::text")},
      {receipt_of("repeat('9', 1000)::numeric"), "23514 data has a number that is too large"},
      {"template => 'receipt', data => (repeat('{\"order\":', 3000) || '1' || repeat('}', 3000))::jsonb",
       "23514 data is nested more than 64 deep"},
      {"template => 'receipt', data => jsonb_build_object('', 1, '.', 2, 'order.', 3, 'link', 4)",
       "rejected "},
      {"template => 'receipt', data => '{\"order\": 1, \"token\": \"x\"}'"},
      {"template => 'receipt', data => (SELECT jsonb_object_agg('k' || n, n) FROM generate_series(1, 200000) n)",
       "23514 data has 3577790 octets, at most 1048576 are allowed"},
      {"template => 'loop', " + object_of("a", "(SELECT jsonb_agg(n) FROM generate_series(1, 50) n)"),
       "rejected loop.txt:1: it takes more than 1,000,000 steps"},
      {"template => 'growing', data => jsonb_build_object('text', repeat('x', 10000), 'a', "
       "(SELECT jsonb_agg(n) FROM generate_series(1, 50) n))",
       "rejected growing.txt:1: the text becomes larger than "},
      {"template => 'a{{{'", "23514 \"a{{{\" is not a name of a template"},
  };
}

}  // namespace

TEST_CASE("a message with a hostile value is a mail without foreign headers, or an outcome with a reason") {
  DeliveryRig rig(0);
  const TemporaryDirectory templates;
  write_templates(templates);
  auto all = hostile_content();
  for (auto& more : hostile_data())
    all.push_back(std::move(more));
  std::map<std::string, Hostile> sent;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto address = fmt::format("hostile{}@mail.example", i);
    INFO(all[i].arguments);
    const auto why_not = refusal(*rig.connection, sent_to(address, all[i].arguments));
    if (!why_not.empty()) {
      CHECK(why_not == all[i].outcome);
      continue;
    }
    rig.connection->run(
        "SELECT mailroom_send(ARRAY['ordinary@mail.example'], subject => 'Ordinary', text => 'mail')");
    sent[address] = all[i];
  }
  TestRelay relay({.offers_pipelining = true});
  CHECK(TestSender(rig.database.conninfo(), relay.url(),
                   {"--once", "--batch-limit", "10", "--templates", templates.path().string()})
            .wait() == 0);

  std::multiset<std::string> taken;
  for (const auto& mail : relay.taken()) {
    taken.insert(mail.to);
    INFO(mail.to);
    const auto read = read_by_gmime(mail.message);
    std::set<std::string> names;
    for (const auto& [name, text] : read.headers) {
      CHECK(name != "X-Injected");
      if (name.rfind("X-", 0) != 0 && name.rfind("Content-", 0) != 0) CHECK(names.insert(name).second);
    }
    CHECK(read.to.size() == 1);
    // No line is longer than SMTP allows, and none ends in a bare CR or LF.
    std::size_t begin = 0;
    for (auto end = mail.message.find('\n'); end != std::string::npos; end = mail.message.find('\n', begin)) {
      if (end - begin > 1000 || end == 0 || mail.message[end - 1] != '\r') FAIL_CHECK("a line is malformed");
      begin = end + 1;
    }
  }
  CHECK(taken.count("ordinary@mail.example") == sent.size());
  for (const auto& [address, message] : sent) {
    INFO(address << " " << message.arguments);
    const auto rows = rig.connection->run(
        "SELECT s.state || coalesce(' ' || s.reply, '') FROM mailroom_messages m, mailroom_message_status(m.id) s "
        "WHERE m.recipients[1] = $1",
        address);
    REQUIRE(rows.size() == 1);
    const std::string outcome = rows[0][0].c_str();
    CHECK_THAT(outcome, Catch::Matchers::StartsWith(message.outcome));
    CHECK(outcome.size() < 1000);
    CHECK(taken.count(address) == (message.outcome == "accepted" ? 1U : 0U));
  }
}

TEST_CASE("what no text of PostgreSQL and no JSON can hold is refused where the mail is asked for") {
  DeliveryRig rig(0);
  const std::vector<std::pair<std::string, std::string>> refused{
      {"subject => 's', text => E'a\\u0000b'", "42601 "},
      {"subject => 's', text => E'\\xff'", "22021 "},
      {"template => 'receipt', data => '{\"order\": \"\\u0000\"}'", "22P05 "},
      {"template => 'receipt', data => '{\"order\": \"\\ud800\"}'", "22P02 "},
      {"template => 'receipt', data => '{\"order\": \"\\udc00\\ud800\"}'", "22P02 "},
      {"template => 'receipt', data => '{\"order\": NaN}'", "22P02 "},
      {"subject => 's', text => 't', attachments => '[{\"name\": \"a\\u000d\\u000aX: 1\", \"content\": \"\"}]'",
       "23514 the name of an attachment"},
      {"subject => 's', text => 't', attachments => '[{\"name\": \"a\", \"content\": \"%%\"}]'", "22023 "},
      {"subject => 's', text => 't', attachments => '[{\"name\": \"a\", \"content\": \"\", \"content_type\": "
       "\"a/b\\r\\nX: 1\"}]'",
       "23514 the attachment \"a\" has a type"},
      {"subject => 's', text => 't', headers => '{\"X-A\": \"\\u0001\"}'", "23514 the header \"X-A\""},
      {"subject => 's', text => 't', headers => '{\"X-A:\": \"x\"}'", "23514 a header has a name"}};
  for (const auto& [arguments, error] : refused) {
    INFO(arguments);
    CHECK_THAT(refusal(*rig.connection, sent_to("a@mail.example", arguments)),
               Catch::Matchers::StartsWith(error));
  }
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_messages") == 0);
}

}  // namespace mailroom::test::message_hostile_test
