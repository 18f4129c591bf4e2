// The one form of an address: what the program and the database make of it is the same, and whatever is said
// of an address holds for each way of writing it.

#include <variant>

#include "integration/bounce_rig.hpp"
#include "mail/address.hpp"
#include "support/catch.hpp"

namespace mailroom::test::address_form_test {

TEST_CASE("the program and the database make one form of an address") {
  struct Row {
    const char* typed;
    const char* form;
  };
  BounceRig rig;
  for (const auto& row : std::vector<Row>{
           {"ada@mail.example", "ada@mail.example"},
           {"ADA@Mail.Example", "ada@mail.example"},
           {"\"ada\"@mail.example", "ada@mail.example"},
           {"\"a\\da\"@mail.example", "ada@mail.example"},
           {"\"\\a\\d\\a\"@mail.example", "ada@mail.example"},
           {"\"ada.b\"@mail.example", "ada.b@mail.example"},
           {"a..b@mail.example", "\"a..b\"@mail.example"},
           {"\"a..b\"@mail.example", "\"a..b\"@mail.example"},
           {"a.@mail.example", "\"a.\"@mail.example"},
           {"\"a b\"@mail.example", "\"a b\"@mail.example"},
           {"\"a\\ b\"@mail.example", "\"a b\"@mail.example"},
           {"\"a\\\"b\"@mail.example", "\"a\\\"b\"@mail.example"},
           {"\"a\\\\b\"@mail.example", "\"a\\\\b\"@mail.example"},
           {"\"a@b\"@mail.example", "\"a@b\"@mail.example"},
           {"a+b_c'd!#$%&*/=?^`{|}~@mail.example", "a+b_c'd!#$%&*/=?^`{|}~@mail.example"},
           {"ada@bücher.example", "ada@xn--bcher-kva.example"},
           {"ada@BÜCHER.Example", "ada@xn--bcher-kva.example"},
           {"ada@bu\xcc\x88"
            "cher.example",
            "ada@xn--bcher-kva.example"},
           {"ada@XN--BCHER-KVA.example", "ada@xn--bcher-kva.example"},
           {"ada@faß.example", "ada@xn--fa-hia.example"},
           {"ada@ÄÖÅÉÑŁŠŽŐŸ.example", nullptr},
           {"ada@ΕΛΛΆΔΑ.example", nullptr},
           {"ada@ПОЧТА.пример", nullptr},
           {"ada@почта.ПРИМЕР", nullptr},
           {"ada@ЁЄЇЎ.example", nullptr},
           {"ada@例え.テスト", nullptr},
           {"ada@例え。テスト", nullptr},
           {"ada@ｍａｉｌ．ｅｘａｍｐｌｅ", "ada@mail.example"},
           {"ada@ＭＡＩＬ.example", "ada@mail.example"},
           {"ada@메일.example", nullptr},
           {"ada@mañana.example", nullptr},
           {"ada@Việt-Nam.example", nullptr},
           {"ada@ÇAĞRIŞ.example", nullptr},
           {"ada@xn--a.bücher.example", nullptr},
           {"łukasz@mail.example", "łukasz@mail.example"},
           {"\"łukasz\"@mail.example", "łukasz@mail.example"},
       }) {
    INFO(row.typed);
    const auto parsed = mail::parse_address(row.typed);
    const auto made = rig.connection->run("SELECT mailroom_canonical($1)", std::string(row.typed))[0][0];
    const auto* address = std::get_if<mail::Address>(&parsed);
    if (address == nullptr) continue;
    CHECK(mail::canonical_text(*address) == made.c_str());
    if (row.form != nullptr) CHECK(std::string(made.c_str()) == row.form);
    // It is the form of itself.
    CHECK(rig.connection->run("SELECT mailroom_canonical($1) = $1", std::string(made.c_str()))[0][0]
              .as<bool>());
  }
}

TEST_CASE("a limit, a suppression and a copy of a message mean an address, however it is written") {
  BounceRig rig;
  rig.environment["MAILROOM_SEND_PER_RECIPIENT"] = "1/1h";
  CHECK_FALSE(rig.mail("victim@mail.example").empty());
  for (const auto* const address :
       {"\"victim\"@mail.example", "\"v\\ictim\"@mail.example", "VICTIM@MAIL.example"})
    CHECK(rig.mail(address).empty());
  CHECK_FALSE(rig.mail("ada@b\xc3\xbc"
                       "cher.example")
                  .empty());
  CHECK(rig.mail("ada@B\xc3\x9c"
                 "CHER.example")
            .empty());
  rig.environment.erase("MAILROOM_SEND_PER_RECIPIENT");
  CHECK(rig.run({"suppression", "add",
                 "sup@b\xc3\xbc"
                 "cher.example",
                 "--reason", "test"})
            .status == 0);
  for (const auto* const address : {"\"sup\"@b\xc3\xbc"
                                    "cher.example",
                                    "sup@B\xc3\x9c"
                                    "CHER.EXAMPLE",
                                    "sup@xn--bcher-kva.example"})
    CHECK(rig.mail(address).empty());
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['eve@mail.example', '\"eve\"@mail.example'], cc => ARRAY['E <EVE@mail.example>'], "
      "subject => 'x', text => 'y')");
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM tokens WHERE message = (SELECT max(id) FROM mailroom_messages)") ==
        1);
}

}  // namespace mailroom::test::address_form_test
