#include "cmd/status/status_sizes.hpp"

#include "support/catch.hpp"

namespace mailroom::test::status_sizes_test {

TEST_CASE("sizes are shown with two digits or more, in steps of 1,024") {
  for (const auto& [bytes, text] :
       std::vector<std::pair<std::int64_t, std::string>>{{0, "0 B"},
                                                         {999, "999 B"},
                                                         {1000, "1.0 kB"},
                                                         {8192, "8.0 kB"},
                                                         {10'240, "10 kB"},
                                                         {5 * 1024 * 1024, "5.0 MB"},
                                                         {3'000'000'000, "2.8 GB"}})
    CHECK(cmd::size_text(bytes) == text);
}

TEST_CASE("growth and what prune would remove are estimated from the mean size of a row") {
  const std::vector<status::TableSize> sizes{
      {.name = "tokens",
       .bytes = 6'000'000,
       .index_bytes = 4'000'000,
       .rows = 10'000,
       .dead_rows = 12,
       .last_day = 1000,
       .last_week = 5000},
      {.name = "accounts", .bytes = 8192, .index_bytes = 16'384, .rows = 3}};
  CHECK(sizes[0].bytes_of(1000) == 1'000'000);
  // Statistics may be older than the count.
  CHECK(sizes[0].bytes_of(20'000) == 10'000'000);
  CHECK(status::TableSize{}.bytes_of(0) == 0);
  CHECK(
      cmd::render_sizes(sizes, {.summary = {.tokens = 2000, .messages = 3, .batches = 7}}, 80) ==
      "table       size  indexes     rows  dead  last day  last week\n"
      "tokens    5.7 MB   3.8 MB  ~10,000   ~12     1,000      5,000\n"
      "accounts  8.0 kB    16 kB       ~3    ~0\n"
      "\n"
      "total: 9.6 MB\n"
      "growth: ~977 kB in the last day, ~4.8 MB in the last week\n"
      "mailroom prune would remove: 2,000 tokens, 3 messages, 7 batch records and 0 delivery records: ~1.9 MB, "
      "which new rows fill\n"
      "~ marks an estimate, by the server's statistics and the mean size of a row\n");
}

TEST_CASE("attachments count with the content of messages, and prune says which tables have free space") {
  const std::vector<status::TableSize> sizes{
      {.name = "mailroom_attachments", .bytes = 80'000'000, .rows = 40},
      {.name = "mailroom_messages", .bytes = 10'000'000, .rows = 1000},
      {.name = "mailroom_batches", .bytes = 8192, .rows = 10},
  };
  cmd::Prunable prunable{.summary = {.messages = 100, .contents = 400, .batches = 5}, .old_attachments = 20};
  const auto text = cmd::render_sizes(sizes, prunable, 80);
  CHECK(text.find("100 messages, the content of 400 messages, up to 20 attachments, 5 batch records") !=
        std::string::npos);
  CHECK(text.find(": ~43 MB, which") != std::string::npos);
  CHECK(
      cmd::render_free_space(sizes, prunable, "mail") ==
      "free space in the files, which new rows fill once a vacuum has passed: mailroom_attachments ~38 MB, "
      "mailroom_messages ~4.8 MB\n"
      "this gives it back to the disk, and locks each table meanwhile, so that nothing is inserted or mailed:\n"
      "  VACUUM FULL mail.mailroom_attachments, mail.mailroom_messages;\n");
  prunable.summary.keeps_contents = true;
  CHECK(prunable.rows_of("mailroom_attachments") == 0);
  CHECK(cmd::render_free_space(sizes, {}, "mail").empty());
}

}  // namespace mailroom::test::status_sizes_test
