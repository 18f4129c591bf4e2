// The profiles of a configuration file: what they change, and what they must not take along.

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <set>

#include "base/text.hpp"
#include "carriers/carriers.hpp"
#include "cmd/send/send_setup.hpp"
#include "config/key_table.hpp"
#include "support/build_paths.hpp"
#include "support/refused_settings.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::profile_settings_test {
namespace {

const std::string two_profiles =
    "send:\n  relay: smtp://app@main.example:587\n  password_file: /main-password\n  from: App <app@main.example>\n"
    "  link: https://main.example/{action}?token={token}\n  headers: ['X-A: main']\n"
    "profiles:\n"
    "  acme:\n    from: Acme <hello@acme.example>\n    headers: ['X-A: acme', 'X-B: acme']\n    rate: 5/s\n"
    "  big:\n    relay: smtp://big@mail.big.example\n    password_file: big-password\n    link: https://big.example/{token}\n";

config::Settings loaded(const std::string& file, const config::Overrides& overrides = {},
                        const config::EnvironmentVariables& environment = {}) {
  const WorkingDirectory directory;
  directory.write("mailroom.yaml", file);
  return config::load_settings(overrides, environment);
}

std::vector<config::KeyEntry> keys_of_send() {
  std::vector<config::KeyEntry> keys;
  std::ranges::copy_if(config::key_table(), std::back_inserter(keys),
                       [](const auto& entry) { return entry.key.starts_with("send."); });
  return keys;
}

/// Of a section of the file.
std::string line_of(const config::KeyEntry& entry, const std::string& text) {
  return fmt::format("  {}: {}\n", entry.key.substr(entry.key.find('.') + 1),
                     entry.is_list ? fmt::format("['{}']", text) : text);
}

/// Two values that the key accepts, neither of them its default.
std::pair<std::string, std::string> values_of(const config::KeyEntry& entry) {
  if (entry.target.choices.size() > 1) return {entry.target.choices[0], entry.target.choices[1]};
  for (const auto& [text, other] : std::vector<std::pair<std::string, std::string>>{{"11", "12"},
                                                                                    {"11s", "12s"},
                                                                                    {"11/s", "12/s"},
                                                                                    {"false", "true"},
                                                                                    {"100kB", "200kB"},
                                                                                    {"/one", "/two"}}) {
    try {
      loaded("send:\n" + line_of(entry, text));
      return {text, other};
    } catch (const Error&) {
      continue;
    }
  }
  FAIL("no value is accepted");
  return {};
}

config::RelayPath path_of_profile(const config::Settings& settings, const std::string& name) {
  return config::with_profile(settings, name).send.path;
}

config::Overrides::Flag flag(const std::string& key, const std::string& text) {
  return {.key = key, .text = text, .name = "--" + key};
}

}  // namespace

TEST_CASE("a profile changes what it names, and has everything else of send") {
  const auto settings = loaded(two_profiles);
  const auto acme = config::with_profile(settings, "acme").send;
  CHECK(acme.from == "Acme <hello@acme.example>");
  CHECK(acme.headers == std::vector<std::string>{"X-A: acme", "X-B: acme"});
  CHECK(acme.path.rate == config::Rate{5, Milliseconds(1000)});
  CHECK(acme.path.targets == config::parse_relays("smtp://app@main.example:587"));
  CHECK(acme.path.password_file == "/main-password");
  CHECK(acme.link == "https://main.example/{action}?token={token}");
  CHECK(acme.path.profile.empty());
  for (const auto* name : {"", "default"})
    CHECK(config::with_profile(settings, name).send == settings.send);
}

TEST_CASE("a relay of a profile gets no password of another relay") {
  const auto settings = loaded(
      "send:\n  relay: smtp://app@main.example\n  password_file: /main\n  hello_name: host.example\n"
      "profiles:\n  big:\n    relay: smtp://mail.big.example\n");
  const auto big = config::with_profile(settings, "big");
  CHECK(big.send.path.password_file.empty());
  CHECK(big.send.path.hello_name == "host.example");
  CHECK(big.send.path.profile == "big");
  CHECK(big.send.path.name_of("send.password_file") == "profiles.big.password_file");
  CHECK(config::setting_of(big, "send.password_file").text.empty());
  CHECK(config::setting_of(big, "send.password_file").name() == "profiles.big.password_file");
  CHECK(config::setting_of(big, "send.from").name() == "send.from");
}

// What these tests expect of a key is by its name: a key that is not named here must be kept from other
// relays, whatever the table says of it.

TEST_CASE("what send says for its relays reaches no relay of a profile, but for what holds for every relay") {
  const std::set<std::string_view> of_every_relay{"send.hello_name",  "send.plaintext_relay_for_tests",
                                                  "send.connections", "send.timeout",
                                                  "send.rate",        "send.throttled_by"};
  const std::string profiles = "profiles:\n  big:\n    relay: smtp://big.example\n";
  const auto of_big = [&](const std::string& more) {
    return loaded("send:\n" + more + profiles).profiles.front().send.path;
  };
  for (const auto& entry : keys_of_send()) {
    INFO(entry.key);
    const auto [text, other] = values_of(entry);
    CHECK((of_big(line_of(entry, text)) != of_big(line_of(entry, other))) ==
          of_every_relay.contains(entry.key));
  }
}

TEST_CASE(
    "profiles whose relays are told different things have lanes of their own, and none gets another's value") {
  const std::set<std::string_view> of_content{
      "send.from",      "send.reply_to", "send.bounce_address",   "send.link",
      "send.templates", "send.headers",  "send.unsubscribe_link", "send.unsubscribe_mailto"};
  int checked = 0;
  for (const auto& entry : keys_of_send()) {
    if (!entry.of_profiles) continue;
    INFO(entry.key);
    const auto [text, other] = values_of(entry);
    const auto profile = [&, key = entry.key](const std::string& name, const std::string& line) {
      const auto* const relay = key == "send.relay" ? "" : "    relay: smtp://relay.example\n";
      return "  " + name + ":\n" + relay + (line.empty() ? "" : "  " + line);
    };
    const std::string send = "send:\n  relay: smtp://main.example\nprofiles:\n";
    const auto one = profile("one", line_of(entry, text));
    const auto two = profile("two", line_of(entry, other));
    const auto three = entry.key == "send.relay" ? std::string() : profile("three", "");
    const auto settings = loaded(send + one + two + three);
    const bool is_apart = !of_content.contains(entry.key);
    CHECK(cmd::lanes_of(settings).size() == (!is_apart ? 2 : three.empty() ? 3 : 4));
    CHECK((path_of_profile(settings, "one") != path_of_profile(settings, "two")) == is_apart);
    if (!is_apart) continue;
    // As if the others were not there.
    CHECK(path_of_profile(settings, "one") == path_of_profile(loaded(send + one), "one"));
    CHECK(path_of_profile(settings, "two") == path_of_profile(loaded(send + two), "two"));
    if (!three.empty())
      CHECK(path_of_profile(settings, "three") == path_of_profile(loaded(send + three), "three"));
    CHECK(settings.send.path == loaded(send).send.path);
    ++checked;
  }
  CHECK(checked >= 13);
}

TEST_CASE("profiles with equal relays and logins share a lane, which has the name of the first") {
  const auto settings = loaded(
      "send:\n  relay: smtp://main.example\nprofiles:\n"
      "  one:\n    relay: ' smtp://u@big.example ,SES://eu-west-1'\n    password_file: /p\n    from: a@b.example\n"
      "  two:\n    relay: smtp://u@big.example,SES://eu-west-1\n    password_file: /p\n"
      "  three:\n    relay: smtp://main.example\n");
  CHECK(cmd::lanes_of(settings).size() == 2);
  CHECK(path_of_profile(settings, "two").profile == "one");
  CHECK(path_of_profile(settings, "three").profile.empty());
}

TEST_CASE("who reads a setting is a kind of carrier that there is") {
  std::set<std::string_view> sinks;
  std::set<std::string_view> relays;
  for (const auto& kind : carriers::carrier_kinds())
    sinks.insert(kind.name);
  for (const auto& kind : carriers::relay_kinds())
    relays.insert(kind.name);
  for (const auto& entry : config::key_table()) {
    if (entry.readers.empty()) continue;
    INFO(entry.key);
    REQUIRE((entry.key.starts_with("send.") || entry.key.starts_with("sink.")));
    for (const auto reader : split(entry.readers, ' '))
      CHECK((entry.key.starts_with("send.") ? relays : sinks).contains(reader));
  }
}

TEST_CASE("a setting of one provider is named in the directory of that provider alone") {
  int checked = 0;
  for (const auto& entry : config::key_table()) {
    if (!entry.key.starts_with("send.")) continue;
    const auto [text, other] = values_of(entry);
    if (loaded("send:\n" + line_of(entry, text)).send.path.options.empty()) continue;
    ++checked;
    const auto own = fmt::format("{}/core/carriers/{}/", source_directory, entry.readers);
    for (const std::string root :
         {"/core/config", "/core/carriers", "/core/delivery", "/core/doctor", "/cmd"}) {
      for (const auto& file : std::filesystem::recursive_directory_iterator(source_directory + root)) {
        if (!file.is_regular_file() || file.path().string().starts_with(own)) continue;
        INFO(entry.key << " in " << file.path());
        CHECK(read_file(file.path().string()).find(entry.key.substr(5)) == std::string::npos);
      }
    }
  }
  CHECK(checked >= 5);
}

TEST_CASE("a relative path of a profile begins where its file is") {
  const WorkingDirectory directory;
  directory.write("mailroom.yaml", two_profiles);
  const auto big = config::with_profile(
      config::load_settings({.file = (directory.path() / "mailroom.yaml").string(), .flags = {}}, {}), "big");
  CHECK(big.send.path.password_file == directory.path() / "big-password");
}

TEST_CASE("the command line overrides every profile, and the environment only what send says") {
  const config::Overrides overrides{
      .file = {},
      .flags = {flag("send.relay", "smtp://localhost:1025"), flag("send.from", "me@app.example")}};
  const auto settings = loaded(two_profiles, overrides);
  for (const auto* name : {"acme", "big"}) {
    const auto send = config::with_profile(settings, name).send;
    CHECK(send.path.targets == config::parse_relays("smtp://localhost:1025"));
    CHECK(send.from == "me@app.example");
    CHECK(send.path.profile.empty());
  }
  CHECK(config::with_profile(settings, "big").send.link == "https://big.example/{token}");
  // That of send: the option for a relay may come with one for its password.
  CHECK(config::with_profile(settings, "big").send.path.password_file == "/main-password");

  const auto varied =
      loaded(two_profiles, {},
             {{"MAILROOM_SEND_FROM", "env@app.example"}, {"MAILROOM_SEND_RELAY", "smtp://env.example"}});
  CHECK(config::with_profile(varied, "acme").send.from == "Acme <hello@acme.example>");
  CHECK(config::with_profile(varied, "acme").send.path.targets == config::parse_relays("smtp://env.example"));
  CHECK(config::with_profile(varied, "big").send.from == "env@app.example");
  CHECK(config::with_profile(varied, "big").send.path.targets ==
        config::parse_relays("smtp://big@mail.big.example"));
}

TEST_CASE("a profile that is not as it must be is refused with the place") {
  const std::string send = "send:\n  relay: smtp://main.example\nprofiles:\n";
  check_files_refused({
      {"profiles: 5", "mailroom.yaml:1:1: profiles is a section, and must hold profiles by name", ""},
      {"profiles:\n  acme: 5", "mailroom.yaml:2:3: profiles.acme is a profile, and must hold keys", ""},
      {"profiles:\n  default:\n    from: a@b.example",
       "mailroom.yaml:2:3: default is the profile of mails that name none",
       "its values are those of the section send"},
      {"profiles:\n  acme:\n  acme:\n", "mailroom.yaml:3:3: profiles.acme is given twice",
       "the first is in line 2"},
      {"profiles:\n  acme:\n    form: a@b.example",
       "mailroom.yaml:3:5: profiles.acme.form is not a key of a profile", "did you mean from?"},
      {"profiles:\n  acme:\n    batch_limit: 5",
       "mailroom.yaml:3:5: profiles.acme.batch_limit is not a key of a profile",
       "send.batch_limit holds for all profiles"},
      {"profiles:\n  acme:\n    from: a@b.example\n    from: b@b.example",
       "mailroom.yaml:4:5: profiles.acme.from is given twice", "the first is in line 3"},
      {"profiles:\n  acme:\n    rate: fast",
       "profiles.acme.rate is fast (from mailroom.yaml:3:5), and must be a number and a time, such as 14/s, 100/min or "
       "50000/1d",
       ""},
      {send + "  acme:\n    password_file: a",
       "profiles.acme.password_file (from mailroom.yaml:5:5) needs a relay of the profile",
       "name it: profiles.acme.relay"},
  });
}

TEST_CASE("a profile that nobody has configured is named with those that there are") {
  const auto name_none = [](const config::Settings& settings) {
    try {
      config::with_profile(settings, "acne");
    } catch (const Error& error) {
      return fmt::format("{}: {}", error.what(), error.hint());
    }
    return std::string("accepted");
  };
  CHECK(name_none(loaded(two_profiles)) == "there is no profile 'acne': profiles: default, acme, big");
  CHECK(name_none(loaded("")) ==
        "there is no profile 'acne': the section profiles of the configuration file has them");
}

TEST_CASE("a thousand profiles load what they share once") {
  const WorkingDirectory directory;
  for (int i = 0; i < 50; ++i) {
    directory.write(fmt::format("shared/t{}.subject", i), "Hello");
    directory.write(fmt::format("shared/t{}.txt", i), "Hello {{email}}");
  }
  std::string file =
      "send:\n  relay: smtp://mail.example\n  from: App <app@mail.example>\n  templates: shared\nprofiles:\n";
  for (int i = 0; i < 1000; ++i) {
    const auto own = fmt::format("own{}", i);
    std::string templates;
    // Three have a directory of their own, two of them with the same files.
    if (i < 3) {
      directory.write(own + "/welcome.subject", "Welcome");
      directory.write(own + "/welcome.txt", i == 0 ? "Welcome {{email}}" : "Hi {{email}}");
      templates = ", templates: " + own;
    }
    file += fmt::format("  p{}: {{from: P <p{}@mail.example>{}}}\n", i, i, templates);
  }
  directory.write("mailroom.yaml", file);
  config::EnvironmentVariables environment;
  environment["MAILROOM_SECRET_KEY"] = std::string(64, '0');
  const auto settings = config::load_settings({}, environment);
  REQUIRE(settings.profiles.size() == 1000);
  CHECK(config::with_profile(settings, "p7").profiles.empty());
  templates::TemplateStore store;
  const auto profiles = cmd::configured_profiles(settings, &store);
  CHECK(store.sets() == 3);
  CHECK(cmd::lanes_of(settings).size() == 1);
}

}  // namespace mailroom::test::profile_settings_test
