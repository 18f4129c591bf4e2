// Accounts by name: which account is suggested for a name that is not found.

#include "accounts/account_lookup.hpp"

#include "support/catch.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::account_lookup_test {
namespace {

const std::string capitals_count = "addresses and logins are case-sensitive";

std::string hint_for(db::Connection& connection, const std::vector<std::string>& names) {
  try {
    accounts::find_accounts(connection, names);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::unusable);
    return error.hint();
  }
  return "found";
}

void insert(db::Connection& connection, const std::string& email, const std::string& login) {
  connection.run("INSERT INTO accounts (email, login) VALUES ($1, $2)", email, login);
}

}  // namespace

TEST_CASE("a token is refused in place of a name, before the server sees it") {
  TestDatabase database;
  const auto connection = database.connect();
  const std::string token(86, 'x');
  insert(*connection, "ada@mail.example", token);
  const std::string secret = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
  insert(*connection, secret + "@mail.example", secret);
  for (const auto& text : {token, secret, "\\x" + secret, "x" + secret}) {
    for (const auto& name :
         {text, "email:" + text, "https://app.example/activate/" + text, "<" + text + ">"}) {
      CAPTURE(name);
      try {
        accounts::find_accounts(*connection, {"login:" + token, name});
        FAIL("it was looked up");
      } catch (const Error& error) {
        CHECK(error.code() == ExitCode::usage);
        CHECK(std::string(error.what()).find(text) == std::string::npos);
      }
    }
  }
  CHECK(hint_for(*connection, {"login:" + secret}) == "found");
  CHECK(hint_for(*connection, {secret + "@mail.example"}) == "found");
  CHECK(hint_for(*connection, {"login:" + token}) == "found");
}

TEST_CASE("a mailbox names the account with its address") {
  TestDatabase database;
  const auto connection = database.connect();
  insert(*connection, "ada@mail.example", "ada");
  for (const auto* name :
       {"Ada Lovelace <ada@mail.example>", "<ada@mail.example>", "email:Ada <ada@mail.example>"}) {
    CAPTURE(name);
    CHECK(hint_for(*connection, {name}) == "found");
  }
}

TEST_CASE("a name that differs only in case is suggested as it is spelled in the table") {
  TestDatabase database;
  const auto connection = database.connect();
  insert(*connection, "ada@mail.example", "ada");
  insert(*connection, "m.donald@mail.example", "McDonald");
  CHECK(hint_for(*connection, {"ada"}) == "found");
  CHECK(hint_for(*connection, {"Ada"}) == "did you mean: ada; names are case-sensitive");
  CHECK(hint_for(*connection, {"login:ADA"}) == "did you mean: login:ada; names are case-sensitive");
  CHECK(hint_for(*connection, {"Ada@Mail.Example"}) ==
        "did you mean: ada@mail.example; names are case-sensitive");
  CHECK(hint_for(*connection, {"email:ADA@mail.example"}) ==
        "did you mean: email:ada@mail.example; names are case-sensitive");
  CHECK(hint_for(*connection, {"mcdonald"}) == "did you mean: McDonald; names are case-sensitive");
  CHECK(hint_for(*connection, {"Ada", "ada", "bob", "MCDONALD"}) ==
        "did you mean: ada, McDonald; names are case-sensitive");
}

TEST_CASE("of an address in other letters each account is named, however they are spelled") {
  TestDatabase database;
  const auto connection = database.connect();
  for (const auto* login : {"eve", "Eve", "eVe"})
    insert(*connection, login + std::string("@mail.example"), login);
  CHECK(hint_for(*connection, {"EVE@mail.example"}) ==
        "did you mean: eve@mail.example, Eve@mail.example, eVe@mail.example; names are case-sensitive");
  CHECK(accounts::accounts_in_other_case(*connection, "EVE@mail.example").size() == 3);
  CHECK(accounts::accounts_in_other_case(*connection, "eve@mail.example").size() == 2);
  CHECK(accounts::accounts_in_other_case(*connection, "adam@mail.example").empty());
}

TEST_CASE("a pasted mailbox is its address, and a login that looks like one stays") {
  TestDatabase database;
  const auto connection = database.connect();
  insert(*connection, "bob@mail.example", "bob");
  insert(*connection, "cid@mail.example", "<cid@mail.example>");
  CHECK(hint_for(*connection, {"Bob <bob@mail.example>"}) == "found");
  CHECK(hint_for(*connection, {"email:Bob <bob@mail.example>"}) == "found");
  CHECK(hint_for(*connection, {"login:<cid@mail.example>"}) == "found");
}

TEST_CASE("a name that differs in more than case gets no suggestion") {
  TestDatabase database;
  const auto connection = database.connect();
  insert(*connection, "ada@mail.example", "ada");
  for (const auto* name : {"adam", "7", "id:7", "email:ADA", "login:Ada@mail.example", "", "login:"}) {
    INFO(name);
    CHECK(hint_for(*connection, {name}) == capitals_count);
  }
}

TEST_CASE("the usual capitalisation is found by the index, any other by one scan of the table") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2000);
  connection->run("ANALYZE accounts");
  const auto reads = [&](const std::string& name) {
    connection->run("SELECT pg_stat_force_next_flush()");
    const auto before =
        value<int>(*connection, "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'accounts'");
    hint_for(*connection, {name});
    connection->run("SELECT pg_stat_force_next_flush()");
    return value<int>(*connection, "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'accounts'") -
           before;
  };
  CHECK(reads("USER1999") == 0);
  CHECK(reads("User1999") == 0);
  CHECK(reads("1999") == 0);
  CHECK(reads("uSER1999") == 0);
  insert(*connection, "m.donald@mail.example", "McDonald");
  CHECK(reads("mcdonald") == 1);
}

TEST_CASE(
    "a table that takes too long to scan for a suggestion is skipped, and the name is refused as usual") {
  TestDatabase database;
  const auto connection = database.connect();
  insert(*connection, "ada@mail.example", "aDa");
  connection->run("CREATE SCHEMA slow");
  connection->run(
      "CREATE FUNCTION slow.lower(text) RETURNS text LANGUAGE plpgsql AS $$BEGIN IF $1 = 'aDa' THEN "
      "PERFORM pg_sleep(20); RAISE EXCEPTION 'nobody waits so long'; END IF; RETURN pg_catalog.lower($1); "
      "END$$");
  connection->run("SET search_path = slow, public, pg_catalog");
  CHECK(hint_for(*connection, {"ADa"}) == capitals_count);
  CHECK(value<std::string>(*connection, "SHOW statement_timeout") == "0");
}

}  // namespace mailroom::test::account_lookup_test
