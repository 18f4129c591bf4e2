#include "delivery/reply_text.hpp"

#include <random>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "support/catch.hpp"

namespace mailroom::test::reply_text_test {

TEST_CASE("a reply ends with the line that has a blank after its code") {
  delivery::ReplyReader reply;
  CHECK_FALSE(reply.add("550-5.1.1 no\r\n"));
  CHECK(reply.code() == 0);
  CHECK_FALSE(reply.add("550-5.1.1 such\r\n"));
  CHECK(reply.add("550 5.1.1 user\r\n"));
  CHECK(reply.code() == 550);
  CHECK(reply.text() == "5.1.1 no 5.1.1 such 5.1.1 user");
  CHECK(reply.last_line() == "5.1.1 user");
  reply.clear();
  CHECK(reply.code() == 0);
  CHECK(reply.text().empty());
  CHECK(reply.add("250"));
  CHECK(reply.code() == 250);
  CHECK(reply.text().empty());
}

TEST_CASE("a line that is no reply ends none") {
  for (const std::string line : {"", "2", "25", "abc", "2 50 ok", "25a ok", "250-", "250x", " 250 ok"}) {
    INFO(line);
    delivery::ReplyReader reply;
    CHECK_FALSE(reply.add(line));
    CHECK(reply.code() == 0);
  }
}

TEST_CASE("an endless reply takes bounded memory") {
  delivery::ReplyReader reply;
  for (int i = 0; i < 10'000; ++i)
    reply.add("250-" + std::string(10'000, 'x'));
  CHECK(reply.text().size() < 5000);
  CHECK(reply.last_line().size() < 5000);
}

TEST_CASE("a recorded reply is printable, short and without secrets") {
  CHECK(delivery::recorded_reply("2.0.0 ok: queued as ABC", {}) == "2.0.0 ok: queued as ABC");
  CHECK(delivery::recorded_reply("a\x1b[0m\r\nb\xff\xe2\x80\xae", {}) == "a?[0m??b??");
  CHECK(delivery::recorded_reply("no: sesame, sesame!", {"sesame"}) == "no: ***, ***!");
  CHECK(delivery::recorded_reply("no", {""}) == "no");
  CHECK(delivery::recorded_reply(std::string(201, 'x'), {}).size() == 200);
  // A character of two bytes is not cut.
  CHECK(delivery::recorded_reply(std::string(199, 'x') + "ü", {}) == std::string(199, 'x'));
  CHECK(delivery::recorded_reply(std::string(198, 'x') + "ü", {}) == std::string(198, 'x') + "ü");
  // A secret across the end is masked before the text is cut.
  CHECK(delivery::recorded_reply(std::string(196, 'x') + "sesame", {"sesame"}) ==
        std::string(196, 'x') + "***");
}

TEST_CASE("a random reply is recorded in printable form") {
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (auto size = random() % 300; size > 0; --size)
      text += static_cast<char>(random() % 256);
    const auto recorded = delivery::recorded_reply(text, {"a", "\xc3"});
    CHECK(recorded.size() <= 200);
    CHECK(is_printable(recorded));
    CHECK(recorded.find('a') == std::string::npos);
    delivery::named_delay(text);
  }
}

TEST_CASE("the forms of a login") {
  CHECK(delivery::secrets_of_login("", "").empty());
  CHECK(delivery::secrets_of_login("alice", "open sesame 4711") ==
        std::vector<std::string>{"AGFsaWNlAG9wZW4gc2VzYW1lIDQ3MTE", "b3BlbiBzZXNhbWUgNDcxMQ",
                                 "open sesame 4711"});
}

TEST_CASE("the log shows words without addresses") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", ""},
      {"5.1.1 <anna@app.example>: no such user", "5.1.1 <***@***>: no such user"},
      {"anna@app.example", "***@***"},
      {"mail for anna+x@app.example, and o'neil@b.example.", "mail for ***@***, and o'***@***."},
      {"rcpt to:anna@[192.0.2.1] refused", "rcpt to:***@*** refused"},
      {"<\"anna b\"@app.example> is unknown", "<***@***> is unknown"},
      {"user 'anna@app.example' unknown", "user '***@***' unknown"},
      {"\"@", "\"@"},
      {"open 24/7 @ the desk", "open 24/7 @ the desk"},
      {"a@b@c", "***@***"},
      {"\xc3\xa4nna@\xc3\xb6.example is unknown", "***@*** is unknown"},
  };
  for (const auto& [text, shown] : rows) {
    INFO(text);
    CHECK(delivery::without_addresses(text) == shown);
  }
}

TEST_CASE("a reply can name the time of the next attempt") {
  const std::vector<std::pair<std::string, int>> rows{
      {"4.7.1 Greylisted, please try again in 60 seconds", 60},
      {"4.7.0 Try again later, retry in 5 minutes", 300},
      {"4.2.0 Greylisted for 300 s", 300},
      {"rate limit: wait 10 sec", 10},
      {"Throttled. Please retry after 2 min.", 120},
      {"try again after 1 hour", 3600},
      {"TRY AGAIN IN 30 SECONDS", 30},
      {"try again in 30s", 30},
      {"in doubt, try again in a while or in 45 seconds", 45},
      {"try again in 24 hours", 86'400},
  };
  for (const auto& [text, delay] : rows) {
    INFO(text);
    CHECK(delivery::named_delay(text) == std::chrono::seconds(delay));
  }
  for (const std::string text :
       {"", "try again later", "try again in 60", "try again in 60 days", "try again in -60 seconds",
        "try again in 0 seconds", "try again in 86401 seconds", "try again in 99999999999999999999 seconds",
        "4.3.2 system in 10 seconds of maintenance", "try again in 25 hours"}) {
    INFO(text);
    CHECK_FALSE(delivery::named_delay(text).has_value());
  }
}

}  // namespace mailroom::test::reply_text_test
