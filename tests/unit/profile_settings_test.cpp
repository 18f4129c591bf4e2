// The profiles of a configuration file: what they change, and what they must not take along.

#include "support/refused_settings.hpp"

namespace mailroom::test::profile_settings_test {
namespace {

const std::string two_profiles =
    "send:\n  relay: smtp://app@main.example:587\n  password_file: /main-password\n  from: App <app@main.example>\n"
    "  link: https://main.example/{action}?token={token}\n  headers: ['X-A: main']\n"
    "profiles:\n"
    "  acme:\n    from: Acme <hello@acme.example>\n    headers: ['X-A: acme', 'X-B: acme']\n    rate: 5/s\n"
    "  big:\n    relay: smtp://big@mail.big.example\n    password_file: big-password\n    link: https://big.example/{token}\n";

Settings loaded(const std::string& file, const Overrides& overrides = {},
                const EnvironmentVariables& environment = {}) {
  const WorkingDirectory directory;
  directory.write("mailroom.yaml", file);
  return load_settings(overrides, environment);
}

Overrides::Flag flag(const std::string& key, const std::string& text) {
  return {.key = key, .text = text, .name = "--" + key};
}

}  // namespace

TEST_CASE("a profile changes what it names, and has everything else of send") {
  const auto settings = loaded(two_profiles);
  const auto acme = with_profile(settings, "acme").send;
  CHECK(acme.from == "Acme <hello@acme.example>");
  CHECK(acme.headers == std::vector<std::string>{"X-A: acme", "X-B: acme"});
  CHECK(acme.rate == Rate{5, Milliseconds(1000)});
  CHECK(acme.relay == "smtp://app@main.example:587");
  CHECK(acme.password_file == "/main-password");
  CHECK(acme.link == "https://main.example/{action}?token={token}");
  CHECK(acme.relay_profile.empty());
  for (const auto* name : {"", "default"})
    CHECK(with_profile(settings, name).send == settings.send);
}

TEST_CASE("a relay of a profile gets no password of another relay") {
  const auto settings = loaded(
      "send:\n  relay: smtp://app@main.example\n  password_file: /main\n  token_file: /token\n  token_command: date\n"
      "  ca_file: /ca\n  hello_name: host.example\nprofiles:\n  big:\n    relay: smtp://mail.big.example\n");
  const auto big = with_profile(settings, "big");
  CHECK(big.send.password_file.empty());
  CHECK(big.send.token_file.empty());
  CHECK(big.send.token_command.empty());
  CHECK(big.send.ca_file.empty());
  CHECK(big.send.hello_name == "host.example");
  CHECK(big.send.relay_profile == "big");
  CHECK(setting_of(big, "send.password_file").text.empty());
  CHECK(setting_of(big, "send.password_file").name() == "profiles.big.password_file");
  CHECK(setting_of(big, "send.from").name() == "send.from");
}

TEST_CASE("a relative path of a profile begins where its file is") {
  const WorkingDirectory directory;
  directory.write("mailroom.yaml", two_profiles);
  const auto big = with_profile(
      load_settings({.file = (directory.path() / "mailroom.yaml").string(), .flags = {}}, {}), "big");
  CHECK(big.send.password_file == directory.path() / "big-password");
}

TEST_CASE("the command line overrides every profile, and the environment only what send says") {
  const Overrides overrides{
      .file = {},
      .flags = {flag("send.relay", "smtp://localhost:1025"), flag("send.from", "me@app.example")}};
  const auto settings = loaded(two_profiles, overrides);
  for (const auto* name : {"acme", "big"}) {
    const auto send = with_profile(settings, name).send;
    CHECK(send.relay == "smtp://localhost:1025");
    CHECK(send.from == "me@app.example");
    CHECK(send.relay_profile.empty());
  }
  CHECK(with_profile(settings, "big").send.link == "https://big.example/{token}");
  // That of send: the option for a relay may come with one for its password.
  CHECK(with_profile(settings, "big").send.password_file == "/main-password");

  const auto varied =
      loaded(two_profiles, {},
             {{"MAILROOM_SEND_FROM", "env@app.example"}, {"MAILROOM_SEND_RELAY", "smtp://env.example"}});
  CHECK(with_profile(varied, "acme").send.from == "Acme <hello@acme.example>");
  CHECK(with_profile(varied, "acme").send.relay == "smtp://env.example");
  CHECK(with_profile(varied, "big").send.from == "env@app.example");
  CHECK(with_profile(varied, "big").send.relay == "smtp://big@mail.big.example");
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
  const auto name_none = [](const Settings& settings) {
    try {
      with_profile(settings, "acne");
    } catch (const Error& error) {
      return fmt::format("{}: {}", error.what(), error.hint());
    }
    return std::string("accepted");
  };
  CHECK(name_none(loaded(two_profiles)) == "there is no profile 'acne': profiles: default, acme, big");
  CHECK(name_none(loaded("")) ==
        "there is no profile 'acne': the section profiles of the configuration file has them");
}

}  // namespace mailroom::test::profile_settings_test
