#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/settings.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace mailroom;

namespace {

struct Case {
  std::string file, message, hint;
};

}  // namespace

TEST_CASE("a file of the wrong shape is refused with the place") {
  const std::vector<Case> cases{
      {"collect: 5", "mailroom.yaml:1:1: collect is a section, and must hold keys", ""},
      {"collect: [queue]", "mailroom.yaml:1:1: collect is a section, and must hold keys", ""},
      {"collect:\n  queue:\n    name: a\n",
       "mailroom.yaml:2:3: collect.queue must be a single value, and is a section", ""},
      {"collect:\n  queue: [a]\n", "mailroom.yaml:2:3: collect.queue must be a single value, and is a list",
       ""},
      {"collect:\n  queue:\n", "mailroom.yaml:2:3: collect.queue has no value",
       "remove the line to have the default"},
      {"signing:\n  previous_key_files: a\n", "mailroom.yaml:2:3: signing.previous_key_files must be a list",
       "write it as [first, second]"},
      {"signing:\n  previous_key_files: [a, [b]]\n",
       "mailroom.yaml:2:27: signing.previous_key_files must be a list of single values", ""},
      {"- a", "mailroom.yaml:1:1: the file must hold sections, such as collect:", ""},
      {"collect:\n  queue: a\n  queue: b\n", "mailroom.yaml:3:3: collect.queue is given again",
       "line 2 has it already"},
      {"log:\ncollect:\nlog:\n", "mailroom.yaml:3:1: log is given again", "line 1 has it already"},
      {"log:\n---\nlog:\n", "mailroom.yaml holds more than one YAML document",
       "remove all that follows the second line of ---"},
  };
  const test::WorkingFolder folder;
  for (const auto& [file, message, hint] : cases) {
    INFO(message);
    folder.write("mailroom.yaml", file);
    try {
      load_settings({}, {});
      FAIL("accepted: " << file);
    } catch (const Error& error) {
      CHECK(error.what() == message);
      CHECK(error.hint() == hint);
      CHECK(error.code() == ExitCode::configuration);
    }
  }
}

TEST_CASE("what may be a secret in the wrong place is not shown") {
  const std::string key = "5ec1e7a4b0d29f6388c7f31d0a96e245b17c0f8ad35e642991fd8c03ba7e4d56";
  const std::vector<Case> cases{
      {"signing: {key:" + key + "}", "mailroom.yaml:1:11: signing.key… is no key of the configuration",
       "a space follows the colon"},
      {"database: {url:postgresql://app:hunter2@db/mail}",
       "mailroom.yaml:1:12: database.url… is no key of the configuration", "a space follows the colon"},
      {"signing: {" + key + "}", "mailroom.yaml:1:11: signing.… is no key of the configuration",
       "mailroom.yaml.example names every key"},
      {key + ": a", "mailroom.yaml:1:1: … is no key of the configuration",
       "mailroom.yaml.example names every key"},
      {"ey" + key + "k of.another: a", "mailroom.yaml:1:1: … is no key of the configuration",
       "mailroom.yaml.example names every key"},
      {"log:\n  level: " + key, "log.level (from mailroom.yaml:2:3) must be one of: debug, info, warn, error",
       ""},
      {"signing:\n  key_file: " + key,
       "signing.key_file (from mailroom.yaml:2:3) is a key, and must be the path of a file",
       "give the key itself as signing.key; a file with such a name is written ./NAME"},
  };
  const test::WorkingFolder folder;
  for (const auto& [file, message, hint] : cases) {
    INFO(message);
    folder.write("mailroom.yaml", file);
    try {
      load_settings({}, {});
      FAIL("accepted: " << file);
    } catch (const Error& error) {
      CHECK(error.what() == message);
      CHECK(error.hint() == hint);
    }
  }
}

TEST_CASE("a file that is no YAML is refused with the place") {
  const test::WorkingFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"collect:\n  queue: 'open\n", "2:15"},
      {"collect:\n  queue: \"open\n  batch_limit: 5\n\n", "3:17"},
      {"collect:\n  queue: a: b\n", "2:11"},
      {"collect:\n\tqueue: a\n", "2:7"},
      {"collect: [queue\n", "1:1"},
      {"collect:\n  queue: *nowhere\n", "2:10"},
      {",", "1:1"},
      {"log:\n]", "2:1"},

  };
  for (const auto& [text, place] : cases) {
    folder.write("mailroom.yaml", text);
    // The reason that follows is the parser's own, and differs between its versions.
    CHECK_THROWS_WITH(load_settings({}, {}),
                      Catch::Matchers::StartsWith("mailroom.yaml:" + place + ": not valid YAML: "));
  }
}

TEST_CASE("a file that was asked for must be there and readable") {
  const test::WorkingFolder folder;
  const auto check_file = [](const std::optional<std::string>& flag, const Environment& environment,
                             const std::string& message, const std::string& hint) {
    try {
      load_settings({flag, {}}, environment);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.what() == message);
      CHECK(error.hint() == hint);
      CHECK(error.code() == ExitCode::configuration);
    }
  };
  check_file("gone.yaml", {}, "there is no configuration file gone.yaml", "it is named by --config");
  check_file({}, {{"MAILROOM_CONFIG", "gone.yaml"}}, "there is no configuration file gone.yaml",
             "it is named by MAILROOM_CONFIG");
  check_file(".", {}, "cannot read the configuration file .: Is a directory", "");
  check_file("/dev/zero", {}, "cannot read the configuration file /dev/zero: it is larger than 1 MiB", "");
  std::filesystem::create_directory("mailroom.yaml");
  check_file({}, {}, "cannot read the configuration file mailroom.yaml: Is a directory", "");
}
