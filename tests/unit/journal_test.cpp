#include <cstdlib>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/log.hpp"
#include "support/catch.hpp"

namespace mailroom::test::journal_test {

TEST_CASE("an entry of the journal has a priority, a message and fields") {
  const auto [level, priority] = GENERATE(std::pair{LogLevel::debug, 7}, std::pair{LogLevel::info, 6},
                                          std::pair{LogLevel::warn, 4}, std::pair{LogLevel::error, 3});
  JournalEntry entry(level, "emitted tokens=3");
  entry.add("queue", "mailroom");
  entry.add("signing-key 2", "a=b\nc");
  CHECK(entry.fields() == std::vector<std::string>{fmt::format("PRIORITY={}", priority),
                                                   "MESSAGE=emitted tokens=3", "MAILROOM_QUEUE=mailroom",
                                                   "MAILROOM_SIGNING_KEY_2=a=b\nc"});
}

TEST_CASE("an entry of the journal has no password") {
  JournalEntry entry(LogLevel::warn, "lost postgresql://me:secret@host/db");
  entry.add("reason", "postgresql://me:secret@host/db");
  for (const auto& field : entry.fields())
    CHECK(field.find("secret") == std::string::npos);
}

TEST_CASE("stderr is the journal where it is the stream that systemd names") {
  struct stat file {};
  REQUIRE(fstat(2, &file) == 0);
  const auto stream = fmt::format("{}:{}", file.st_dev, file.st_ino);
  setenv("JOURNAL_STREAM", stream.c_str(), 1);
  CHECK(stderr_is_journal() == has_journal);
  setenv("JOURNAL_STREAM", (stream + "1").c_str(), 1);
  CHECK_FALSE(stderr_is_journal());
  unsetenv("JOURNAL_STREAM");
  CHECK_FALSE(stderr_is_journal());
}

}  // namespace mailroom::test::journal_test
