#include "db/conninfo.hpp"

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "base/error.hpp"
#include "base/secret_text.hpp"
#include "db/search_path.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::conninfo_test {
namespace {

std::map<std::string, std::string> options_of(const std::string& conninfo) {
  std::map<std::string, std::string> options;
  for (const auto& option : db::parse_conninfo(conninfo))
    options[option.keyword] = option.value;
  return options;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// An environment variable of this process during its lifetime.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    REQUIRE(setenv(name, value.c_str(), 1) == 0);
  }
  ~WithVariable() { unsetenv(name_); }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  const char* name_;
};

/// Quotes a value as libpq's manual describes.
std::string keyword(const std::string& name, const std::string& value) {
  std::string text = name + " = '";
  for (const char c : value)
    text += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return text + "'";
}

std::string percent_encoded(const std::string& value) {
  const std::string digits = "0123456789ABCDEF";
  std::string text;
  for (const char letter : value) {
    const auto c = static_cast<unsigned char>(letter);
    text += std::string("%") + digits[c / 16] + digits[c % 16];
  }
  return text;
}

/// A random value of characters that are special in one of the two forms, and of others.
std::string random_value(std::mt19937_64& random) {
  const std::string alphabet = "ab9 '\\\"=%@:/?#&,*\xc3";
  std::string value;
  for (auto length = 1 + random() % 12; length > 0; --length)
    value += alphabet[random() % alphabet.size()];
  return value;
}

}  // namespace

TEST_CASE("a redacted connection string shows everything but the passwords") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", ""},
      {"host=db", "host=db"},
      {"host=db password=hunter2 dbname=mail", "password=*** dbname=mail host=db"},
      {"host=db sslpassword=hunter2", "host=db sslpassword=***"},
      {"password = 'hunter2 \\' \\\\ x' host = db", "password=*** host=db"},
      {"password='' host=db", "password=*** host=db"},
      {"host='' application_name='a b'", "host='' application_name='a b'"},
      {"application_name='a\nuser=b\tc'", "application_name='a\nuser=b\tc'"},
      {"postgresql://app%40x:h%40nter%2F@db/m%40il?application_name=a@b",
       "user=app@x password=*** dbname=m@il host=db application_name=a@b"},
      {"postgresql://app:hunter2@db:5433/mail", "user=app password=*** dbname=mail host=db port=5433"},
      {"postgres://app:h%40nter%272@db/mail", "user=app password=*** dbname=mail host=db"},
      {"postgresql://app@db/mail?password=hunter2&sslpassword=hunter3",
       "user=app password=*** dbname=mail host=db sslpassword=***"},
      {"postgresql://app:hunter2@a:1,b:2/mail", "user=app password=*** dbname=mail host=a,b port=1,2"},
      {"postgresql:///mail?host=/run/pg%20sockets", "dbname=mail host='/run/pg sockets'"},
  };
  for (const auto& [conninfo, expected] : cases) {
    INFO(conninfo);
    const auto shown = db::redact_conninfo(conninfo);
    CHECK(options_of(shown) == options_of(expected));
    CHECK_FALSE(contains(shown, "nter"));
    CHECK(contains(shown, "***") == db::has_password(conninfo));
  }
}

TEST_CASE("no password survives a redaction, whatever its characters and form") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto password = "<" + random_value(random) + ">";
    const auto user = random_value(random);
    const auto uri = "postgresql://" + percent_encoded(user) + ":" + percent_encoded(password) +
                     "@db/mail?sslpassword=" + percent_encoded(password);
    const auto list = keyword("user", user) + keyword(" password", password) +
                      keyword(" sslpassword", password) + " host=db dbname=mail";
    REQUIRE(options_of(uri) == options_of(list));
    for (const auto& conninfo : {uri, list}) {
      const auto shown = db::redact_conninfo(conninfo);
      REQUIRE_FALSE(contains(shown, "<"));
      REQUIRE_FALSE(contains(shown, ">"));
      auto expected = options_of(conninfo);
      expected["password"] = expected["sslpassword"] = "***";
      REQUIRE(options_of(shown) == expected);
    }
  }
}

TEST_CASE("a malformed connection string is refused and never quoted") {
  for (const std::string conninfo :
       {"postgresql://app:hunter2@[::1/mail", "postgresql://app:hunter2@db/mail?hunter2=1",
        "postgresql://app:hunter2%zz@db", "postgresql://app:hunter2%00@db", "password=hunter2 hunter2",
        "password='hunter2", "hunter2", "hunter2=1", "password=hunter2 host", "postgresql://db/?password",
        // libpq accepts these, and shows a part of the password as a host or a database.
        "postgresql://app:hunter@hunter2@db/mail", "postgres://app:hunter/hunter2@db/mail",
        "postgresql://app:hunter2@db/mail@db"}) {
    INFO(conninfo);
    for (const auto& read : std::vector<std::function<void()>>{[&] { db::parse_conninfo(conninfo); },
                                                               [&] { db::redact_conninfo(conninfo); },
                                                               [&] { db::has_password(conninfo); },
                                                               [&] {
                                                                 db::with_defaults(conninfo, {{"host", "x"}});
                                                               }}) {
      try {
        read();
        FAIL("it was taken");
      } catch (const Error& error) {
        CHECK(error.code() == ExitCode::configuration);
        CHECK(std::string(error.what()).starts_with("the connection string cannot be parsed: "));
        CHECK_FALSE(contains(error.what(), "hunter"));
        CHECK_FALSE(contains(error.hint(), "hunter"));
      }
    }
  }
}

TEST_CASE("a malformed connection string is refused with the reason") {
  const std::vector<std::array<std::string, 3>> cases{
      {"postgresql://x:hunter@h/db?pgbouncer=true", "libpq knows no parameter pgbouncer", "another driver"},
      {"postgres://x@h/db?sslmode=require&search_path=app", "libpq knows no parameter search_path",
       "database.schema"},
      {"postgresql+psycopg2://x:hunter@h/db", "begins with postgresql+psycopg2://",
       "begin it with postgresql://"},
      {"jdbc:postgresql://h/db", "begins with jdbc:postgresql://", "begin it with postgresql://"},
      {"host=h pasword=hunter", "libpq knows no option pasword", "host=HOST"},
      {"password=a hunter=b", "it has an option that libpq does not know", "host=HOST"},
      {"host=h password=a hunter", "a word has no =", "host=HOST"},
      {"password='hunter", "the closing ' of a value is missing", "host=HOST"},
      {"postgresql://x:hun%ter@h/db", "a % must be followed by two hexadecimal digits", "percent-encode"},
      {"postgresql://x:hunter@[::1/db", "the ] of an IPv6 address is missing", "percent-encode"},
      {"postgresql://x:hun/ter@h/db", "a / before the @", "%2F"},
      {"\"postgresql://x:hunter@h/db\"", "begins with a quotation mark", "remove it"},
      {" postgresql://x:hunter@h/db", "begins with a blank", "remove it"},
      {"mysql://x:hunter@h/db", "begins with mysql://", "another database"},
      {"postgresql://x:h@nter@h/db", "more than one @", "%40"}};
  for (const auto& [conninfo, reason, hint] : cases) {
    INFO(conninfo);
    try {
      db::parse_conninfo(conninfo);
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(contains(error.what(), reason));
      CHECK(contains(error.hint(), hint));
      CHECK_FALSE(contains(error.what(), "hunter"));
    }
  }
}

TEST_CASE("libpq's variables and the service file win over a fallback, and the string over both") {
  const TemporaryDirectory directory;
  const auto services = directory.path() / "services";
  std::ofstream(services) << "[slow]\nconnect_timeout=60\n";
  const WithVariable file("PGSERVICEFILE", services.string());
  const std::vector<db::ConninfoOption> fallback{{"connect_timeout", "10"}};
  CHECK(db::connect_timeout_of(db::with_fallbacks("host=h", fallback)) == 10);
  CHECK(db::connect_timeout_of(db::with_fallbacks("host=h service=slow", fallback)) == 60);
  CHECK(db::connect_timeout_of(db::with_fallbacks("service=slow connect_timeout=7", fallback)) == 7);
  const WithVariable variable("PGCONNECT_TIMEOUT", "3");
  CHECK(db::connect_timeout_of(db::with_fallbacks("host=h", fallback)) == 3);
  CHECK(db::connect_timeout_of(db::with_fallbacks("host=h connect_timeout=7", fallback)) == 7);
  CHECK(db::connect_timeout_of(db::with_option("host=h connect_timeout=7", fallback[0])) == 10);
}

TEST_CASE("a password is found in either form, and nothing else is taken for one") {
  for (const std::string conninfo : {"password=x", "sslpassword=x", "postgresql://a:b@db", "password=''"})
    CHECK(db::has_password(conninfo));
  for (const std::string conninfo : {"", "host=password", "passfile=/x", "postgresql://a@db"}) {
    CHECK_FALSE(db::has_password(conninfo));
  }
}

TEST_CASE("a default is added if the connection string lacks the option, and overrides nothing") {
  const std::vector<db::ConninfoOption> defaults{{"application_name", "mailroom"}, {"connect_timeout", "10"}};
  using Options = std::map<std::string, std::string>;
  const std::vector<std::pair<std::string, Options>> cases{
      {"", {{"application_name", "mailroom"}, {"connect_timeout", "10"}}},
      {"connect_timeout=3", {{"application_name", "mailroom"}, {"connect_timeout", "3"}}},
      {"application_name=''", {{"application_name", ""}, {"connect_timeout", "10"}}},
      {"postgresql://db?application_name=a%20b&connect_timeout=0",
       {{"host", "db"}, {"application_name", "a b"}, {"connect_timeout", "0"}}},
  };
  for (const auto& [conninfo, expected] : cases) {
    INFO(conninfo);
    CHECK(options_of(db::with_defaults(conninfo, defaults)) == expected);
  }
}

TEST_CASE("the options of a connection string are unchanged after defaults were added") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    auto expected = std::map<std::string, std::string>{
        {"password", random_value(random)}, {"dbname", random_value(random)}, {"user", random_value(random)}};
    std::string conninfo;
    for (const auto& [name, value] : expected)
      conninfo += keyword(name, value) + " ";
    const auto added = random_value(random);
    expected["application_name"] = added;
    REQUIRE(options_of(db::with_defaults(conninfo, {{"user", "nobody"}, {"application_name", added}})) ==
            expected);
  }
}

TEST_CASE("a connection string whose parts contain a password is refused and never quoted") {
  for (const std::string conninfo :
       {"dbname='postgres://u:hunter2@h/db'", "user='x password=hunter2'", "host='h PASSWORD = hunter2'",
        "dbname='host=h password=\\'hunter2 x\\''", "application_name=password=hunter2",
        "postgresql://h/postgres%3A%2F%2Fu%3Ahunter2%40h"}) {
    INFO(conninfo);
    try {
      db::redact_conninfo(conninfo);
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::configuration);
      CHECK_FALSE(contains(error.what(), "hunter"));
      CHECK_FALSE(contains(error.hint(), "hunter"));
    }
  }
}

TEST_CASE("text with a password keeps everything else") {
  CHECK(without_passwords("database \"postgres://u:hunter2@h/db\" does not exist") ==
        "database \"postgres://***@h/db\" does not exist");
  CHECK(without_passwords("role \"x password=hunter2\" does not exist") ==
        "role \"x password=***\" does not exist");
  CHECK(without_passwords("user='x Password = \\'hunter2 x\\'' host=h") ==
        "user='x Password = \\***' host=h");
  CHECK(without_passwords("see https://mail.example/a@b and password files") ==
        "see https://mail.example/a@b and password files");
  CHECK(without_passwords("password=*** dbname=x") == "password=*** dbname=x");
  CHECK(without_passwords("password=") == "password=");
  CHECK(without_passwords("").empty());
}

TEST_CASE("what should be a URL is shown without what may be a password") {
  CHECK(without_url_passwords("alice:hunter2@host") == "***@host");
  CHECK(without_url_passwords("nats:alice:hunter2@host:4222") == "***@host:4222");
  CHECK(without_url_passwords("//alice:hun@ter2@host") == "***@***@host");
  CHECK(without_url_passwords("alice:hunter2@https://host") == "***@https://host");
  CHECK(without_url_passwords("smtp://a.example, alice:hunter2@b.example") == "smtp://***@b.example");
  CHECK(without_url_passwords("alice:hunter2@a, smtps://bob@b") == "***@a, smtps://bob@b");
  CHECK(without_url_passwords("nats://alice:hun/ter@2@host") == "nats://***@host");
  CHECK(without_url_passwords("smtp://alice@a.example:587, smtp://b.example") ==
        "smtp://alice@a.example:587, smtp://b.example");
  CHECK(without_url_passwords("https://app.example/tokens") == "https://app.example/tokens");
  CHECK(without_url_passwords("").empty());
}

TEST_CASE("a search_path is read from options as the server reads them") {
  CHECK(db::search_path_in("-csearch_path=app,public") == "app,public");
  CHECK(db::search_path_in("-c search_path=app") == "app");
  CHECK(db::search_path_in("--search_path=app") == "app");
  CHECK(db::search_path_in("--Search-Path=app") == "app");
  CHECK(db::search_path_in("-csearch_path=app,\\ public -cjit=off") == "app, public");
  CHECK(db::search_path_in("-csearch_path=a -csearch_path=b") == "b");
  CHECK(db::search_path_in("  -cjit=off  -c") == std::nullopt);
  CHECK(db::search_path_in("search_path=app") == std::nullopt);
  CHECK(db::search_path_in("") == std::nullopt);
}

}  // namespace mailroom::test::conninfo_test
