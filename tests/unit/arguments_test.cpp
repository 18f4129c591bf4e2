#include "cmd/syntax/arguments.hpp"

#include <unistd.h>

#include "base/text.hpp"
#include "cmd/command.hpp"
#include "config/key_table.hpp"
#include "crypto/token.hpp"
#include "support/actions.hpp"
#include "support/catch.hpp"
#include "support/collector_rig.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::arguments_test {
namespace {

const std::string key_text(64, 'b');

/// The stdout and exit code of `invocation`, run without the user's configuration file.
std::pair<ExitCode, std::string> run(const cmd::Invocation& invocation,
                                     config::EnvironmentVariables environment = {}) {
  const test::WorkingDirectory directory;
  environment["MAILROOM_CONFIG"] = directory.write("mailroom.yaml", "log:\n  level: error\n");
  const test::CapturedOutput file;
  const int saved = dup(STDOUT_FILENO);
  dup2(file.fd(), STDOUT_FILENO);
  auto ended = ExitCode::done;
  try {
    cmd::Context context(invocation.global, invocation.overrides, environment);
    ended = invocation.run(context);
  } catch (const Error& error) {
    ended = error.code();
  }
  dup2(saved, STDOUT_FILENO);
  close(saved);
  return {ended, file.text()};
}

/// The error message for `arguments`, which must be a usage error.
std::string refusal(const std::vector<std::string>& arguments) {
  try {
    cmd::parse_arguments(arguments);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "taken";
}

/// A genuine activation token that begins with hyphens: a hyphen is 62 in base64url, six bits each.
std::string token_with_hyphens(std::size_t hyphens) {
  crypto::Secret secret{};
  secret[0] = hyphens > 1 ? 0xFB : 0xF8;
  secret[1] = hyphens > 1 ? 0xE0 : 0x00;
  crypto::Hmac hmac(crypto::Key::from_hex(key_text, "the test"));
  const auto token = queue::sign_token(hmac, *activation_action(), secret, "");
  return {token.begin(), token.end()};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

TEST_CASE("global options are accepted before and after the command") {
  const std::vector<std::string> options{"-o", "json", "--color", "never",    "-q",
                                         "-v", "-y",   "-c",      "some.yaml"};
  for (const bool before : {true, false}) {
    INFO((before ? "before" : "after"));
    std::vector<std::string> arguments{"collect"};
    arguments.insert(before ? arguments.begin() : arguments.end(), options.begin(), options.end());
    const auto parsed = cmd::parse_arguments(arguments);
    CHECK(parsed.global.output == cmd::OutputFormat::json);
    CHECK(parsed.global.colour == cmd::ColourMode::never);
    CHECK(parsed.global.quiet);
    CHECK(parsed.global.verbose);
    CHECK(parsed.global.yes);
    CHECK(parsed.overrides.file == "some.yaml");
  }
}

TEST_CASE("without options nothing is set") {
  const auto parsed = cmd::parse_arguments({"collect"});
  CHECK(parsed.global.output == cmd::OutputFormat::text);
  CHECK(parsed.global.colour == cmd::ColourMode::automatic);
  CHECK_FALSE(parsed.global.quiet);
  CHECK_FALSE(parsed.global.verbose);
  CHECK_FALSE(parsed.global.yes);
  CHECK_FALSE(parsed.overrides.file);
  CHECK(parsed.overrides.flags.empty());
}

TEST_CASE("an override has its key, its text as typed, and the flag's name") {
  int options = 0;
  for (const auto& entry : config::key_table()) {
    for (const auto& option : entry.options) {
      for (const auto command : split(option.commands, ' ')) {
        const std::string flag(option.spec.substr(0, option.spec.find(' ')));
        const auto& name = command.empty() ? "status" : std::string(command);
        for (auto arguments :
             std::vector<std::vector<std::string>>{{name, flag, " 5x"}, {name, flag + "= 5x"}}) {
          CAPTURE(arguments);
          if (name == "suspend" || name == "verify") arguments.emplace_back("a");
          if (name == "template") arguments.emplace_back("check");
          const auto flags = cmd::parse_arguments(arguments).overrides.flags;
          REQUIRE(flags.size() == 1);
          CHECK(flags[0].key == entry.key);
          CHECK(flags[0].text == " 5x");
          CHECK(flags[0].name == flag);
          ++options;
        }
      }
    }
  }
  CHECK(options > 80);
}

TEST_CASE("an unknown command is a usage error that suggests the nearest one") {
  CHECK(refusal({"colect"}) == "there is no command 'colect' | did you mean: mailroom collect");
  CHECK(refusal({"migrat", "up"}) == "there is no command 'migrat' | did you mean: mailroom migrate");
  CHECK(refusal({"-q", "verfy"}) == "there is no command 'verfy' | did you mean: mailroom verify");
  CHECK(refusal({"xxxxxxxxxxxx"}) ==
        "there is no command 'xxxxxxxxxxxx' | mailroom --help lists the commands");
  CHECK(refusal({}) == "no command is given | mailroom --help lists the commands");
  CHECK(refusal({"-q"}) == "no command is given | mailroom --help lists the commands");
}

TEST_CASE("a command that is common in other programs gets a hint") {
  CHECK(refusal({"help"}) == "there is no command 'help' | did you mean: mailroom --help");
  CHECK(refusal({"help", "status"}) == "there is no command 'help' | did you mean: mailroom status --help");
  CHECK(refusal({"help", "me"}) == "there is no command 'help' | did you mean: mailroom --help");
  CHECK(refusal({"version"}) == "there is no command 'version' | did you mean: mailroom --version");
  CHECK(refusal({"rewind"}) == "there is no command 'rewind' | did you mean: mailroom rewind-cursor");
  CHECK(refusal({"rewind", "--by", "5m"}) ==
        "there is no command 'rewind' | did you mean: mailroom rewind-cursor");
}

TEST_CASE("an argument that is not valid text is a usage error") {
  CHECK(contains(refusal({"audit", "\xff"}), "the argument '?' is not valid UTF-8"));
  CHECK(contains(refusal({"suspend", "ada", "--reason", "a\xc3"}), "is not valid UTF-8"));
  CHECK(refusal({"suspend", "ädä", "--reason", "größer"}) == "taken");
}

TEST_CASE("an unknown option is a usage error that suggests the nearest one") {
  CHECK(refusal({"collect", "--batch-limt", "5"}) ==
        "mailroom collect takes no option '--batch-limt' | did you mean: --batch-limit");
  CHECK(refusal({"collect", "--batch-limt=5"}) ==
        "mailroom collect takes no option '--batch-limt=5' | did you mean: --batch-limit");
  CHECK(refusal({"collect", "--databas-url=x"}) ==
        "mailroom collect takes no option '--databas-url=x' | did you mean: --database-url");
  for (const auto& command : cmd::commands()) {
    INFO(command.name);
    // Has a syntax of its own: sendmail_test.cpp.
    if (std::string(command.name) == "sendmail") continue;
    std::vector<std::string> arguments{command.name, "--xyzzy-xyzzy-xyzzy"};
    if (arguments[0] == "verify") arguments.emplace_back("TOKEN");
    const auto message = refusal(arguments);
    CHECK(message.find("--xyzzy-xyzzy-xyzzy") != std::string::npos);
  }
}

TEST_CASE("sendmail takes what is behind it in a syntax of its own, and nothing of other commands") {
  CHECK(refusal({"-q", "--config", "f", "sendmail", "-oi", "--", "-x"}) == "taken");
  CHECK(refusal({"--xyzzy", "sendmail", "-oi"}).find("--xyzzy") != std::string::npos);
  CHECK(
      refusal({"-q", "suspend", "sendmail", "--xyzzy"}).find("mailroom suspend takes no option '--xyzzy'") ==
      0);
}

TEST_CASE("arguments that no command accepts are usage errors") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"collect", "more"},
                                                                     {"verify", "a", "b"},
                                                                     {"verify"},
                                                                     {"migrate", "sideways"},
                                                                     {"migrate", "down", "0"},
                                                                     {"migrate", "down", "two"},
                                                                     {"collect", "--max-batches", "0"},
                                                                     {"collect", "--max-batches", "-1"},
                                                                     {"collect", "-o", "xml"},
                                                                     {"collect", "--color", "green"},
                                                                     {"collect", "--queue"},
                                                                     {"collect", "--once", "verify", "x"},
                                                                     {"--xyzzy", "collect"}}) {
    INFO(arguments.front() << " … " << arguments.back());
    const auto message = refusal(arguments);
    CHECK(message != "taken");
    // At most the name of an operand is in capitals.
    CHECK_FALSE((std::isupper(message[0]) != 0 && std::islower(message[1]) != 0));
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("a token that begins with hyphens reaches verify and is not parsed as an option") {
  const config::EnvironmentVariables environment{{"MAILROOM_SECRET_KEY", key_text}};
  for (const std::size_t hyphens : {0U, 1U, 2U}) {
    auto token = hyphens == 0 ? "A" + token_with_hyphens(1).substr(1) : token_with_hyphens(hyphens);
    INFO(token);
    REQUIRE(token.size() == crypto::token_size);
    REQUIRE(starts_with(token, std::string(hyphens, '-')));
    for (const auto& arguments :
         std::vector<std::vector<std::string>>{{"verify", "--offline", token},
                                               {"verify", token, "--offline"},
                                               {"-q", "verify", token, "--offline"}}) {
      const auto [ended, text] = run(cmd::parse_arguments(arguments), environment);
      // With another first character the token has a wrong signature.
      CHECK(ended == (hyphens == 0 ? ExitCode::forged : ExitCode::done));
      CHECK(contains(text, hyphens == 0 ? " not genuine" : " genuine\n"));
    }
  }
}

TEST_CASE("text that is nearly such a token is rejected by verify, not by the parser") {
  const config::EnvironmentVariables environment{{"MAILROOM_SECRET_KEY", key_text}};
  const auto token = token_with_hyphens(1);
  for (const auto& mangled :
       {token.substr(0, 85) + "+", token.substr(0, 85), token.substr(0, 43), token + "A"}) {
    const auto [ended, text] = run(cmd::parse_arguments({"verify", "--offline", mangled}), environment);
    CHECK(ended == ExitCode::forged);
    CHECK(contains(text, " malformed"));
  }
  CHECK(refusal({"verify", "--offline", token.substr(0, 42)}) != "taken");
  // A path after a short option is no token.
  CHECK(refusal({"-c/srv/services/mailroom/production/mailroom-yaml", "config", "check"}) == "taken");
}

TEST_CASE("help begins with examples, for the program and for each command") {
  for (const std::string flag : {"--help", "-h"}) {
    const auto [ended, text] = run(cmd::parse_arguments({flag}));
    CHECK(ended == ExitCode::done);
    CHECK(starts_with(text, "Examples:\n  mailroom "));
    for (const auto& command : cmd::commands()) {
      INFO(command.name);
      CHECK(text.find(std::string("  ") + command.name + " ") != std::string::npos);
      const auto [sub_ended, sub_text] = run(cmd::parse_arguments({command.name, flag}));
      CHECK(sub_ended == ExitCode::done);
      CHECK(starts_with(sub_text, std::string("Examples:\n  mailroom ") + command.name));
      CHECK(sub_text.find(std::string("mailroom ") + command.name) != std::string::npos);
    }
  }
}

TEST_CASE("the version is one line") {
  const auto [ended, text] = run(cmd::parse_arguments({"--version"}));
  CHECK(ended == ExitCode::done);
  CHECK(starts_with(text, "mailroom "));
  CHECK(text.find('\n') == text.size() - 1);
}

TEST_CASE("a parsed invocation runs after the parser is destroyed") {
  // No server listens there, so a command that needs the database fails. The sanitizers catch access to the
  // destroyed parser.
  const std::string nowhere = "host=/nowhere/at/all dbname=none";
  const config::EnvironmentVariables environment{{"MAILROOM_SECRET_KEY", key_text}};
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"migrate", "--database-url", nowhere},
                                             {"migrate", "up", "--database-url", nowhere},
                                             {"migrate", "status", "--database-url", nowhere},
                                             {"migrate", "down", "2", "--database-url", nowhere},
                                             {"collect", "--once", "--database-url", nowhere},
                                             {"verify", std::string(86, 'A'), "--database-url", nowhere}}) {
    INFO(arguments[0] << " " << arguments[1]);
    CHECK(run(cmd::parse_arguments(arguments), environment).first == ExitCode::database);
  }
}

TEST_CASE("a token is refused where a name is expected, and not repeated") {
  const auto secret = "\\x" + std::string(32, '0') + std::string(32, 'e');
  for (const auto& token :
       {token_with_hyphens(1), token_with_hyphens(2), std::string(86, 'a'), secret, secret.substr(2)}) {
    for (const auto& arguments :
         std::vector<std::vector<std::string>>{{"suspend", token},
                                               {"suspend", "https://app.example/activate?token=" + token},
                                               {"suspend", "user1", "--reason", token},
                                               {"resend", "--account", token},
                                               {"tail", "--account", token},
                                               {"audit", "--account", token},
                                               {"audit", "--batch", token},
                                               {"status", "--queue", "mailroom," + token},
                                               {"queue", "show", token},
                                               {"queue", "create", "mine", "--budget", token},
                                               {"send", "--to", "a@mail.example", "--account", token},
                                               {"template", "render", "--account", token}}) {
      CAPTURE(arguments.front());
      const auto message = refusal(arguments);
      CHECK(contains(message, " looks like a token"));
      CHECK_FALSE(contains(message, token.substr(1)));
    }
  }
}

TEST_CASE("a token is taken where one is expected, and what looks like one where it stays here") {
  const std::string token(86, 'a');
  CHECK(refusal({"audit", token}) == "taken");
  CHECK(refusal({"audit", "--token", token}) == "taken");
  CHECK(refusal({"verify", token}) == "taken");
  CHECK(refusal({"suspend", "login:" + token}) == "taken");
  CHECK(refusal({"suspend", token + "A"}) == "taken");
  CHECK(refusal({"status", "--database-url", "postgresql://a:" + token + "@host/db"}) == "taken");
}

}  // namespace mailroom::test::arguments_test
