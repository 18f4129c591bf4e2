// Comparing the records with what consumers have written.

#include <fstream>

#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/reconcile_rig.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::reconcile_output_test {
namespace {

/// A collector's output, and what is unexplained beside it.
struct OutputRig : ReconcileRig {
  OperatorRig operations{database};
  TemporaryDirectory directory;

  /// Emits tokens in lines of two; returns the lines.
  std::vector<std::string> collect(int count, const std::string& format = "csv",
                                   const std::string& prefix = "user") {
    insert_accounts(*connection, count, prefix);
    const auto run = operations.mailroom({"collect", "--once", "--batch-limit", "2", "--format", format});
    std::vector<std::string> lines;
    for (const auto& line : lines_of(run.output))
      lines.push_back(line + "\n");
    return lines;
  }

  std::string write(const std::vector<std::string>& lines, const std::string& name = "output") {
    const std::string path = directory.path() / name;
    std::ofstream file(path);
    for (const auto& line : lines)
      file << line;
    return path;
  }

  FinishedRun against(const std::vector<std::string>& lines) {
    return operations.mailroom({"reconcile", "--list", "--against", write(lines)});
  }
};

bool has(const FinishedRun& run, const std::string& text) {
  return run.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("complete output is explained, in either format", "[reconcile]") {
  for (const auto* format : {"csv", "jsonl"}) {
    OutputRig rig;
    const auto lines = rig.collect(6, format);
    REQUIRE(lines.size() == 3);
    const auto run = rig.against(lines);
    INFO(run.output << run.errors);
    CHECK(run.status == 0);
    CHECK(has(run, "6 tokens in 3 lines"));
    CHECK(has(run, "every token is explained"));
  }
}

TEST_CASE("a line that is missing is unexplained", "[reconcile]") {
  OutputRig rig;
  auto lines = rig.collect(6);
  lines.erase(lines.begin() + 1);
  const auto run = rig.against(lines);
  CHECK(run.status == 8);
  CHECK(has(run, "unexplained: 3-4 (on record as emitted once, and not in the output of the consumers)\n"));
}

TEST_CASE("a line that was written twice is unexplained", "[reconcile]") {
  OutputRig rig;
  auto lines = rig.collect(6, "jsonl");
  lines.push_back(lines[0]);
  const auto run = rig.against(lines);
  CHECK(run.status == 8);
  CHECK(has(run, "unexplained: 1-2 (2 times in the output of the consumers, and leased once)\n"));
}

TEST_CASE("a line without a record is unexplained", "[reconcile]") {
  OutputRig rig;
  const auto lines = rig.collect(4);
  rig.hand("UPDATE mailroom_batches SET ids = '{}', emitted = 0, skipped_expired = 2 WHERE id = 2");
  rig.hand("UPDATE tokens SET expires_at = created_at WHERE id > 2");
  CHECK(rig.classes() == "2 emitted, 2 skipped");
  CHECK(
      has(rig.against(lines), "unexplained: 3-4 (once in the output of the consumers, and leased never)\n"));
}

TEST_CASE("a token that another key has signed is a defect, with its line", "[reconcile]") {
  OutputRig rig;
  auto lines = rig.collect(2);
  const auto at = lines[0].find(",user1,") + 7;
  lines[0][at] = lines[0][at] == 'A' ? 'B' : 'A';
  const auto run = rig.against(lines);
  CHECK(run.status == 8);
  CHECK(has(run, "output:1: a token is signed with none of the keys"));
  CHECK(has(run, "(on record as emitted once, and not in"));
  rig.hand("DELETE FROM tokens WHERE id = 2");
  CHECK(has(rig.against(lines), "output:1: a token is not in this database"));
}

TEST_CASE("a line that was cut off counts as not written", "[reconcile]") {
  OutputRig rig;
  auto lines = rig.collect(2);
  lines.insert(lines.begin(), lines[0].substr(0, 60) + "\n");
  lines.push_back(lines[1].substr(0, 80));
  const auto run = rig.against(lines);
  INFO(run.output);
  CHECK(run.status == 0);
  CHECK(has(run, "and 2 lines cut off"));
}

TEST_CASE("a line of an abandoned attempt, and one that was cut by a rewind, are explained", "[reconcile]") {
  OutputRig rig;
  auto lines = rig.collect(4);
  rig.hand("UPDATE mailroom_batches SET emitted_at = NULL, collector = 0 WHERE id = 2");
  CHECK(rig.operations.mailroom({"reconcile", "--against", rig.write(lines)}).status == 0);
  const auto again = rig.collect(0);
  REQUIRE(again.size() == 1);
  lines.push_back(again[0]);
  const auto run = rig.against(lines);
  INFO(run.output);
  CHECK(run.status == 0);
  CHECK(has(run, "2  emitted again  perhaps"));
}

TEST_CASE("a rewind explains the tokens that it took out of an open batch", "[reconcile]") {
  OutputRig rig;
  auto lines = rig.collect(4);
  rig.hand("UPDATE mailroom_batches SET emitted_at = NULL WHERE id = 2");
  rig.hand("SELECT mailroom_rewind('mailroom', 2, 10, '{}')");
  const auto again = rig.collect(0);
  lines.insert(lines.end(), again.begin(), again.end());
  const auto run = rig.against(lines);
  INFO(run.output);
  CHECK(run.status == 0);
  CHECK(rig.classes() == "4 emitted");
}

TEST_CASE("the files of several consumers follow one option, as a shell's pattern does, or one each",
          "[reconcile]") {
  OutputRig rig;
  const auto lines = rig.collect(6);
  const auto both = rig.write({lines[0], lines[1]});
  const auto last = rig.write({lines[2]}, "last");
  const auto run = [&](std::vector<std::string> files) {
    files.insert(files.begin(), "reconcile");
    return rig.operations.mailroom(files);
  };
  CHECK(run({"--against", both, last}).status == 0);
  CHECK(run({"--against", both, "--against", last}).status == 0);
  CHECK(run({"--against", both, last, "--since", "1h"}).status == 0);
  CHECK(run({"--against", both}).status == 8);
}

TEST_CASE("of several queues, the one of the output must be named", "[reconcile]") {
  OutputRig rig;
  const auto lines = rig.collect(2, "jsonl");
  rig.hand("SELECT mailroom_create_queue('other', 0, '{}', 'token_insert')");
  CHECK(rig.against(lines).status == 2);
  const auto path = rig.write(lines);
  CHECK(rig.operations.mailroom({"reconcile", "--queue", "mailroom", "--against", path}).status == 0);
  const auto other = rig.operations.mailroom({"reconcile", "--queue", "other", "--against", path});
  CHECK(other.status == 0);
  CHECK(has(other, "0 tokens in 0 lines"));
}

}  // namespace mailroom::test::reconcile_output_test
