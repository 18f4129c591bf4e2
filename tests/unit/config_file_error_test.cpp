#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "support/refused_settings.hpp"

namespace mailroom::test::config_file_error_test {

TEST_CASE("a file of the wrong structure is refused with the place") {
  check_files_refused({
      {"collect: 5", "mailroom.yaml:1:1: collect is a section, and must hold keys", ""},
      {"collect: [queue]", "mailroom.yaml:1:1: collect is a section, and must hold keys", ""},
      {"collect:\n  queue:\n    name: a\n",
       "mailroom.yaml:2:3: collect.queue must be a single value, and is a section", ""},
      {"collect:\n  queue: [a]\n", "mailroom.yaml:2:3: collect.queue must be a single value, and is a list",
       ""},
      {"collect:\n  queue:\n", "mailroom.yaml:2:3: collect.queue has no value",
       "remove the line to use the default"},
      {"signing:\n  previous_key_files: a\n", "mailroom.yaml:2:3: signing.previous_key_files must be a list",
       "write it as [first, second]"},
      {"signing:\n  previous_key_files: [a, [b]]\n",
       "mailroom.yaml:2:27: signing.previous_key_files must be a list of single values", ""},
      {"send:\n  headers: [X-A: b]\n", "mailroom.yaml:2:13: send.headers must be a list of single values",
       "put an item with a colon in quotes"},
      {"- a", "mailroom.yaml:1:1: the file must hold sections, such as collect:", ""},
      {"collect:\n  queue: a\n  queue: b\n", "mailroom.yaml:3:3: collect.queue is given twice",
       "the first is in line 2"},
      {"log:\ncollect:\nlog:\n", "mailroom.yaml:3:1: log is given twice", "the first is in line 1"},
      {"log:\n---\nlog:\n", "mailroom.yaml holds more than one YAML document",
       "remove everything from the second --- line on"},
  });
}

TEST_CASE("a possible secret in the wrong place is not shown") {
  const std::string key = "5ec1e7a4b0d29f6388c7f31d0a96e245b17c0f8ad35e642991fd8c03ba7e4d56";
  check_files_refused({
      {"signing: {key:" + key + "}", "mailroom.yaml:1:11: signing.key… is not a configuration key",
       "write a space after the colon"},
      {"database: {url:postgresql://app:hunter2@db/mail}",
       "mailroom.yaml:1:12: database.url… is not a configuration key", "write a space after the colon"},
      {"signing: {" + key + "}", "mailroom.yaml:1:11: signing.… is not a configuration key",
       "mailroom.yaml.example lists every key"},
      {key + ": a", "mailroom.yaml:1:1: … is not a configuration key",
       "mailroom.yaml.example lists every key"},
      {"ey" + key + "k of.another: a", "mailroom.yaml:1:1: … is not a configuration key",
       "mailroom.yaml.example lists every key"},
      {"log:\n  level: " + key, "log.level (from mailroom.yaml:2:3) must be one of: debug, info, warn, error",
       ""},
      {"signing:\n  key_file: " + key,
       "signing.key_file (from mailroom.yaml:2:3) is a key, and must be the path of a file",
       "give the key itself as signing.key; write ./NAME for a file with such a name"},
  });
}

TEST_CASE("a file that is not YAML is refused with the place") {
  const WorkingDirectory directory;
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
    directory.write("mailroom.yaml", text);
    // The rest of the message is the parser's own, and differs between its versions.
    CHECK_THROWS_WITH(config::load_settings({}, {}),
                      Catch::Matchers::StartsWith("mailroom.yaml:" + place + ": not valid YAML: "));
  }
}

TEST_CASE("a file that was named explicitly must exist and be readable") {
  const WorkingDirectory directory;
  check_refused({"gone.yaml", {}}, {}, "there is no configuration file gone.yaml", "it is named by --config");
  check_refused({}, {{"MAILROOM_CONFIG", "gone.yaml"}}, "there is no configuration file gone.yaml",
                "it is named by MAILROOM_CONFIG");
  check_refused({".", {}}, {}, "cannot read the configuration file .: Is a directory", "");
  check_refused({"/dev/zero", {}}, {},
                "cannot read the configuration file /dev/zero: it is larger than 1 MiB", "");
  std::filesystem::create_directory("mailroom.yaml");
  check_refused({}, {}, "cannot read the configuration file mailroom.yaml: Is a directory", "");
}

TEST_CASE("a working directory that is closed to the user has no file") {
  const TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all);
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Root may enter any directory.
    const bool closed = chdir(directory.path().c_str()) == 0 && chmod(".", 0) == 0 &&
                        (geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
    try {
      config::load_settings({}, {});
      _exit(closed ? 0 : 2);
    } catch (const Error&) {
      _exit(1);
    }
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace mailroom::test::config_file_error_test
