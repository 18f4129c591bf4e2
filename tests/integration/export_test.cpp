// What message export writes is what forgetting changes, and nothing of others.

#include <set>

#include "base/json.hpp"
#include "messages/exporting.hpp"
#include "messages/forgetting.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/operator_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::export_test {
namespace {

constexpr const char* address = "ada@mail.example";

/// `table key` of rows.
using RowKeys = std::set<std::string>;

const std::map<std::string, std::string>& keys_of_tables() {
  static const std::map<std::string, std::string> keys{
      {"mailroom_messages", "id"}, {"mailroom_deliveries", "token"},   {"mailroom_outcomes", "id"},
      {"mailroom_bounces", "id"},  {"mailroom_suppressions", "topic"}, {"mailroom_operations", "id"},
      {"mailroom_sinks", "name"},  {"mailroom_queues", "name"},        {"mailroom_schema_history", "id"}};
  return keys;
}

/// A person in every table that forgetting changes, beside others.
struct ExportRig : DeliveryRig {
  ExportRig() : DeliveryRig(0) {
    connection->run("SELECT mailroom_want_outcomes(true)");
    connection->run(
        "SELECT mailroom_send(ARRAY['Ada <Ada@Mail.Example>'], subject => 'One', text => 'secret of ada', reference => 'order:1'), "
        "mailroom_send(ARRAY['bob@mail.example', 'ada@mail.example'], cc => ARRAY['cy@mail.example'], subject => 'Two', "
        "text => 'shared words', attachments => '[{\"name\": \"a.txt\", \"content\": \"YQ==\"}]'), "
        "mailroom_send(ARRAY['bob@mail.example'], subject => 'Three', text => 'bob only: ada@mail.example', reply_to => "
        "'ada@mail.example'), mailroom_send(ARRAY['eve@mail.example'], subject => 'Four', text => 'eve only')");
    TestRelay relay({.play = [](const RelayMoment& moment) {
      if (moment.step != RelayStep::end) return RelayAnswer{};
      const bool is_of_eve = moment.recipient == "eve@mail.example";
      return RelayAnswer::reply(
          "250 <" + moment.recipient + "> beside <" +
          (is_of_eve ? "ada@mail.example> and <bob@mail.example>" : "eve@mail.example>"));
    }});
    TestSender sender(database.conninfo(), relay.url(), {"--once"});
    sender.wait();
    connection->run(
        "INSERT INTO mailroom_operations (kind, actor, reason, details) VALUES "
        "('suspend', 'carl the admin', 'ada@mail.example and eve@mail.example asked', '{}'), ('suspend', 'carl', 'eve', '{}')");
    connection->run(
        "INSERT INTO mailroom_suppressions (address, topic, kind, reason, added_by) VALUES "
        "('ada@mail.example', '', 'operator', 'asked', 'carl the admin'), ('ada@mail.example', 'news', 'unsubscribed', 'page', "
        "'ada'), ('eve@mail.example', 'other', 'operator', 'asked', 'carl')");
    connection->run(
        "INSERT INTO mailroom_bounces (digest, place, source, address, kind, reason, reply) VALUES "
        "('\\x01', 1, 'stdin', 'ada@mail.example', 'hard', 'no such user', '550 ada@mail.example'), "
        "('\\x02', 1, 'stdin', 'eve@mail.example', 'soft', 'full', 'eve@mail.example waits for ada@mail.example'), "
        "('\\x03', 1, 'stdin', 'eve@mail.example', 'soft', 'full', 'x')");
    connection->run(
        "INSERT INTO mailroom_sinks VALUES ('relay.example:25', 1, now(), now(), now(), 'ada@mail.example and eve@mail.example refused')");
    connection->run("SELECT mailroom_pause_queue('mailroom', true, 'x')");
    connection->run("UPDATE mailroom_queues SET pause_reason = 'for ada@mail.example'");
    connection->run(
        "UPDATE mailroom_schema_history SET reason = 'asked by ada@mail.example' WHERE id = (SELECT min(id) FROM "
        "mailroom_schema_history)");
  }

  /// All rows of the tables, as text, by table and key.
  std::multimap<std::string, std::string> rows() {
    std::multimap<std::string, std::string> all;
    for (const auto& [table, key] : keys_of_tables()) {
      for (const auto& row : connection->run(fmt::format(
               "SELECT ({0}.{1})::text AS key, to_jsonb({0})::text AS text FROM {0} ORDER BY 2", table, key)))
        all.emplace(table + " " + row.text("key"), row.text("text"));
    }
    return all;
  }
  std::map<std::string, std::vector<nlohmann::json>> exported() const {
    std::map<std::string, std::vector<nlohmann::json>> parts;
    messages::read_export(*connection, address, [&](const auto& part, const std::string& record) {
      parts[std::string(part.name)].push_back(parse_json(record));
    });
    return parts;
  }
};

std::string key_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : std::to_string(value.get<std::int64_t>());
}

}  // namespace

TEST_CASE("an export has the rows that forgetting changes, and no others") {
  ExportRig rig;
  RowKeys exported;
  const auto parts = rig.exported();
  for (const auto& part : messages::export_parts()) {
    const auto key = keys_of_tables().find(std::string(part.table));
    const auto found = parts.find(std::string(part.name));
    if (key == keys_of_tables().end() || found == parts.end()) continue;
    for (const auto& record : found->second)
      exported.insert(key->first + " " + key_text(record[key->second]));
  }
  const auto before = rig.rows();
  messages::forget(*rig.connection, {.addresses = {address}, .reference = {}},
                   {.actor = "carl", .reason = "asked"});
  const auto after = rig.rows();
  RowKeys changed;
  for (const auto& [key, text] : before) {
    const auto [from, to] = after.equal_range(key);
    if (std::none_of(from, to, [&text = text](const auto& row) { return row.second == text; }))
      changed.insert(key);
  }
  CHECK(exported == changed);
  // Each table is there: a part that finds nothing would agree with a rule that forgets nothing.
  for (const auto& [table, key] : keys_of_tables()) {
    CAPTURE(table);
    CHECK(std::ranges::any_of(exported,
                              [&, name = table](const auto& row) { return row.starts_with(name + " "); }));
  }
}

TEST_CASE("an export has what a person was told, and nobody else") {
  ExportRig rig;
  rig.connection->run(
      "INSERT INTO accounts (email, login) VALUES ('ada@mail.example', 'ada'), ('eve@mail.example', 'eve')");
  const auto parts = rig.exported();
  std::string text;
  for (const auto& [name, records] : parts)
    for (const auto& record : records)
      text += plain_json(record) + "\n";
  CAPTURE(text);
  for (const auto* other : {"bob@", "cy@", "eve@", "bob only", "eve only", "carl"})
    CHECK(text.find(other) == std::string::npos);
  CHECK(text.find("secret of ada") != std::string::npos);
  CHECK(text.find("shared words") != std::string::npos);
  CHECK(text.find("YQ==") != std::string::npos);
  REQUIRE(parts.at("messages").size() == 2);
  CHECK(parts.at("messages")[0]["addressed_as"][0] == "Ada <Ada@Mail.Example>");
  CHECK(parts.at("messages")[1]["other_recipients"] == 2);
  CHECK(parts.at("messages_to_others")[0]["named_in"] == nlohmann::json{"reply_to", "text"});
  CHECK(parts.at("suppressions").size() == 2);
  CHECK(parts.at("accounts").size() == 1);
  CHECK(parts.at("operations")[0]["reason"] == "ada@mail.example and (another address) asked");
}

TEST_CASE("an export is a file for its owner alone, and replaces none") {
  ExportRig rig;
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "ada.json").string();
  const OperatorRig mailroom(rig.database);
  const auto run = mailroom.mailroom({"message", "export", "ADA@mail.example", "--to", path});
  CAPTURE(run.errors);
  REQUIRE(run.status == 0);
  CHECK(run.output.find("messages 2, messages to others 1, deliveries ") != std::string::npos);
  const auto object = parse_json(read_file(path));
  CHECK(object["address"] == "ADA@mail.example");
  CHECK(object["messages"].size() == 2);
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms(0077)) ==
        std::filesystem::perms::none);
  CHECK(mailroom.mailroom({"message", "export", "ada@mail.example", "--to", path}).status == 2);
  CHECK(mailroom.mailroom({"message", "export", "ada", "--to", path + "2"}).status == 2);
  const auto nobody = mailroom.mailroom({"message", "export", "no@mail.example", "--to", path + "2"});
  CHECK(nobody.output.find("nothing is on record") != std::string::npos);
  CHECK(parse_json(read_file(path + "2")).size() == 2);
}

TEST_CASE("other addresses are cut out of a text, and one's own stay") {
  const std::vector<std::string> own{"ada@mail.example"};
  const auto cut = [&](const char* text) { return messages::without_other_addresses(text, own); };
  CHECK(cut("<ADA@mail.example>, eve@mail.example.") == "<ADA@mail.example>, (another address).");
  CHECK(cut("xada@mail.example") == "(another address)");
  CHECK(cut("a@@b @ c@ @d") == "a@@b @ c@ @d");
  CHECK(cut("eve@x.example,bob@y.example") == "(another address),(another address)");
}

}  // namespace mailroom::test::export_test
