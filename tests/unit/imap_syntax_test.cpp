// What the server of a mailbox says, line by line.

#include "mailbox/imap_syntax.hpp"

#include "support/catch.hpp"

namespace mailroom::test::imap_syntax_test {

using namespace mailbox;

TEST_CASE("the name of a folder is quoted, and one that IMAP encodes is refused") {
  CHECK(quoted_folder("INBOX") == "\"INBOX\"");
  CHECK(quoted_folder("Read & done") == "\"Read &- done\"");
  CHECK(quoted_folder("a\"b\\c") == "\"a\\\"b\\\\c\"");
  CHECK(quoted_folder("a\r\nm9 DELETE x") == std::nullopt);
  CHECK(quoted_folder("Entwürfe") == std::nullopt);
}

TEST_CASE("a literal is announced at the end of its line") {
  CHECK(literal_size("* 12 FETCH (UID 84 BODY[]<0> {310}") == 310);
  CHECK(literal_size("* LIST () \".\" {5+}") == 5);
  CHECK(literal_size("* 12 FETCH (UID 84 FLAGS ())") == std::nullopt);
  CHECK(literal_size("{x}") == std::nullopt);
  CHECK(literal_size("310}") == std::nullopt);
  CHECK(literal_size("{99999999999999999999999}") == std::nullopt);
}

TEST_CASE("a search gives ids") {
  CHECK(searched_ids("* SEARCH 2 84 882") == std::vector<std::uint32_t>{2, 84, 882});
  CHECK(searched_ids("* search 7") == std::vector<std::uint32_t>{7});
  CHECK(searched_ids("* SEARCH").empty());
  CHECK(searched_ids("* SEARCHED 2").empty());
  CHECK(searched_ids("* OK SEARCH 2").empty());
  CHECK(searched_ids("* SEARCH 0 4294967296 x").empty());
}

TEST_CASE("a fetched mail has its UID before or behind its text") {
  CHECK(fetched_uid("* 12 FETCH (UID 84 BODY[]<0> )") == 84);
  CHECK(fetched_uid("* 12 FETCH (BODY[]<0>  UID 84)") == 84);
  CHECK(fetched_uid("* 12 fetch (uid 84)") == 84);
  CHECK(fetched_uid("* 12 FETCH (FLAGS (XUID 84))") == std::nullopt);
  CHECK(fetched_uid("* 12 EXISTS") == std::nullopt);
  CHECK(fetched_uid("* x FETCH (UID 84)") == std::nullopt);
}

TEST_CASE("a short text may be quoted") {
  CHECK(fetched_text("* 1 FETCH (UID 4 BODY[]<0> \"a\\\"b\\\\\")") == "a\"b\\");
  CHECK(fetched_text("* 1 FETCH (UID 4 BODY[]<0> \"\")") == "");
  CHECK(fetched_text("* 1 FETCH (UID 4 BODY[]<0> NIL)") == std::nullopt);
  CHECK(fetched_text("* 1 FETCH (UID 4 BODY[] \"a") == std::nullopt);
  CHECK(fetched_text("* 1 FETCH (UID 4 FLAGS (\"a\"))") == std::nullopt);
}

TEST_CASE("an answer ends with the tag of its command") {
  CHECK(tagged_end("m1 OK done", "m1")->is_ok);
  CHECK_FALSE(tagged_end("m1 NO [TRYCREATE] no such folder", "m1")->is_ok);
  CHECK(tagged_end("m1 NO [TRYCREATE] no such folder", "m1")->words == "NO [TRYCREATE] no such folder");
  CHECK_FALSE(tagged_end("m12 OK", "m1").has_value());
  CHECK_FALSE(tagged_end("* OK", "m1").has_value());
}

TEST_CASE("capabilities are words in any case") {
  CHECK(has_word("* CAPABILITY IMAP4rev1 Move UIDPLUS", "MOVE"));
  CHECK_FALSE(has_word("* CAPABILITY IMAP4rev1 REMOVE", "MOVE"));
}

}  // namespace mailroom::test::imap_syntax_test
