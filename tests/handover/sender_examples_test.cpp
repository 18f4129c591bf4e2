// The senders of examples/senders, as docs/exec.md shows them.

#include "base/json.hpp"
#include "handover_rig.hpp"
#include "support/catch.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::sender_examples_test {
namespace {

/// How often each token is in the output of a sender: JSON of a token, or of a batch, a line.
std::map<std::int64_t, int> sent_tokens(const std::string& path) {
  std::map<std::int64_t, int> counts;
  for (const auto& line : lines_of(read_file(path))) {
    const auto json = parse_json(line);
    if (json.contains("id")) ++counts[json["id"].get<std::int64_t>()];
    if (!json.contains("tokens")) continue;
    for (const auto& token : json["tokens"])
      ++counts[token["id"].get<std::int64_t>()];
  }
  return counts;
}

}  // namespace

TEST_CASE("the example senders deliver each token once") {
  for (const std::string name : {"sender.py", "sender.mjs", "sender.sh"}) {
    INFO(name);
    HandoverRig rig(45);
    const auto output = (rig.directory.path() / "sent").string();
    TestCollector collector(rig.database,
                            {"--once", "--exec", source_directory + "/examples/senders/" + name},
                            {{"SENDER_OUTPUT", output}});
    CHECK(status_of(collector) == 0);
    INFO(collector.log());
    CHECK(each_once(sent_tokens(output), 45));
    CHECK(rig.count("accepted") == 45);
  }
}

TEST_CASE("the example senders report what they could not deliver") {
  for (const std::string name : {"sender.py", "sender.sh"}) {
    INFO(name);
    HandoverRig rig(15);
    TestCollector collector(rig.database,
                            {"--once", "--exec", source_directory + "/examples/senders/" + name},
                            {{"SENDER_OUTPUT", "/nonexistent/sent"}});
    CHECK(status_of(collector) == 0);
    INFO(collector.log());
    CHECK(rig.count("deferred") == 15);
    CHECK(value<int>(*rig.connection,
                     "SELECT count(*) FROM mailroom_deliveries WHERE reply ILIKE '%No such file%' OR "
                     "reply ILIKE '%nonexistent%'") == 15);
  }
}

TEST_CASE("each example sender has at most 20 lines") {
  for (const std::string name : {"sender.py", "sender.mjs", "sender.sh"}) {
    INFO(name);
    const auto text = read_file(source_directory + "/examples/senders/" + name);
    CHECK(std::count(text.begin(), text.end(), '\n') <= 20);
    CHECK(!text.empty());
  }
}

}  // namespace mailroom::test::sender_examples_test
