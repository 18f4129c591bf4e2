#include "base/spool.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/json.hpp"
#include "carriers/line_sink.hpp"
#include "compose/encoder.hpp"
#include "support/catch.hpp"
#include "support/collector_rig.hpp"
#include "support/temporary_directory.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::spool_test {
namespace {

/// The value of TMPDIR while this lives.
class TemporaryPlace {
 public:
  explicit TemporaryPlace(const std::string& path) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", path.c_str(), 1);
  }
  ~TemporaryPlace() {
    if (before_) {
      setenv("TMPDIR", before_->c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
  }
  TemporaryPlace(const TemporaryPlace&) = delete;
  TemporaryPlace& operator=(const TemporaryPlace&) = delete;

 private:
  std::optional<std::string> before_;
};

/// How many files without a name, from `directory`, this process has open.
int unnamed_files(const std::filesystem::path& directory) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with(directory.string()) && target.ends_with("(deleted)")) ++count;
  }
  return count;
}

/// The text number `i`, of about a third of a MiB.
std::string text_of(int i) {
  return std::to_string(i) +
         std::string(300'000 + static_cast<std::size_t>(i), static_cast<char>('a' + i % 26));
}

std::vector<SpooledText> keep(Spool& spool, int texts) {
  std::vector<SpooledText> kept;
  for (int i = 0; i < texts; ++i)
    kept.push_back(spool.keep(text_of(i)));
  return kept;
}

int wrong_texts(const std::vector<SpooledText>& kept) {
  int wrong = 0;
  std::string memory;
  for (std::size_t i = kept.size(); i-- > 0;) {
    if (kept[i].read(memory) != text_of(static_cast<int>(i))) ++wrong;
  }
  return wrong;
}

claim::MessageContent message_of(int i, std::string_view text) {
  return {.id = i, .recipients = {"ada@mail.example"}, .subject = "Hello", .text = text};
}

}  // namespace

TEST_CASE("texts beyond the memory are in a file without a name, until the last of them ends") {
  const TemporaryDirectory directory;
  const TemporaryPlace place(directory.path());
  Spool spool(nullptr);
  spool.begin_batch();
  const auto few = keep(spool, 10);
  CHECK(unnamed_files(directory.path()) == 0);
  auto many = keep(spool, 40);
  CHECK(unnamed_files(directory.path()) == 1);
  CHECK(std::filesystem::is_empty(directory.path()));
  spool.begin_batch();
  const auto next = keep(spool, 40);
  CHECK(unnamed_files(directory.path()) == 2);
  CHECK(wrong_texts(few) + wrong_texts(many) + wrong_texts(next) == 0);
  many.clear();
  CHECK(unnamed_files(directory.path()) == 1);
}

TEST_CASE("without a directory for temporary files all stays in memory, and the log says so once") {
  const TemporaryPlace place("/proc/self");
  std::ostringstream text;
  Log log{{}, text};
  Spool spool(&log);
  for (int batch = 0; batch < 2; ++batch) {
    spool.begin_batch();
    CHECK(wrong_texts(keep(spool, 20)) == 0);
  }
  CHECK(lines_of(text.str()).size() == 1);
  CHECK(text.str().find("large batches stay in memory") != std::string::npos);
}

TEST_CASE("the lines of a large batch are written in their order, and bounded") {
  const TemporaryDirectory directory;
  const TemporaryPlace place(directory.path());
  CapturedOutput file;
  Output output{file.fd()};
  carriers::LineSink sink(compose::make_jsonl_encoder(), output);
  const std::string body(50'000, 'b');
  for (const std::int64_t batch : {7, 8}) {
    sink.begin({batch, 1, "mailroom"}, 1000);
    for (int i = 1; i <= 200; ++i) {
      const auto message = message_of(i, body);
      claim::TokenRow row;
      row.id = i;
      row.email = "ada@mail.example";
      row.content = &message;
      sink.add(row, "");
    }
    CHECK(unnamed_files(directory.path()) == 1);
    CHECK(sink.finish({}).emitted == 200);
  }
  std::vector<std::int64_t> ids;
  for (const auto& line : lines_of(file.text())) {
    CHECK(line.size() <= compose::longest_line + 100);
    const auto parsed = parse_json(line);
    for (const auto& token : parsed.at("tokens")) {
      ids.push_back(token.at("id"));
      CHECK(token.at("message").at("text") == body);
    }
  }
  REQUIRE(ids.size() == 400);
  for (std::size_t i = 0; i < ids.size(); ++i)
    REQUIRE(ids[i] == static_cast<std::int64_t>(i % 200 + 1));
}

}  // namespace mailroom::test::spool_test
