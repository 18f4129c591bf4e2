// Runs every example of every --help as typed, in a directory and on a database such as a reader may have.

#include <csignal>
#include <map>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "cmd/command.hpp"
#include "cmd/syntax/command_line.hpp"
#include "cmd/syntax/command_syntax.hpp"
#include "crypto/token.hpp"
#include "support/actions.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/test_collector.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::examples_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// True for a command that runs until it is stopped.
bool runs_on(const std::string& command) {
  static const Pattern follows("mailroom .*(-f|--follow|--watch)\\b.*");
  static const Pattern ends(".*(--once|--max-batches|--help|--to|--dry-run)\\b.*");
  if (command.starts_with("mailroom bounce --listen")) return true;
  if (command.starts_with("mailroom template serve")) return true;
  if (command.starts_with("mailroom submission") || command.starts_with("mailroom desk")) return true;
  // No server has the name of the mailbox: it is tried again.
  for (const auto* source : {"--maildir", "--imap", "--pop3"}) {
    if (command.starts_with(std::string("mailroom bounce ") + source)) return !contains(command, "--once");
  }
  if (command.starts_with("mailroom outcomes")) return !contains(command, "--off");
  if (command.starts_with("mailroom collect") || (command + " ").starts_with("mailroom send "))
    return !ends.matches(command);
  return follows.matches(command);
}

/// A recovery token with `code` that belongs to no database.
std::string recovery_token(const std::string& code) {
  crypto::Hmac hmac(crypto::Key::from_hex(test_key, "the test"));
  const auto token = queue::sign_token(hmac, *recovery_action(), crypto::Secret{1, 2, 3}, code);
  return {token.begin(), token.end()};
}

/// The examples may rely on: accounts user1@mail.example to user5@mail.example with the logins user1 to user5
/// and one token each, emitted in batches from 1 on; a second queue, `newsletter`; a running collector
/// of each; a relay; a template, receipt; a role, shop, and its key, re_AbCdE; a key, tokens.txt,
/// accounts.txt, queues.yaml, order.json, sender.py and outcomes.py in the directory.
class World {
 public:
  /// `actions` are those of the queue newsletter.
  explicit World(const std::string& actions)
      : collector_(prepared(actions),
                   {"--format", "jsonl", "--batch-limit", "100", "--batch-timeout", "50ms"}),
        second_(database_, {"--queue", "newsletter", "--batch-timeout", "50ms"}) {
    key_ = directory_.write("mailroom.key", std::string(test_key) + "\n");
    REQUIRE(eventually([&] { return emitted_ids(collector_.output()).size() == 5; }));
    token_ = emitted_tokens(collector_.output()).at(0).at("token").get<std::string>();
    directory_.write("tokens.txt", token_ + "\n" + token_ + "\n");
    directory_.write("accounts.txt", "user3\nuser4@mail.example\n");
    directory_.write("sender.py", read_file(source_directory + "/examples/senders/sender.py"), 0700);
    directory_.write("outcomes.py", read_file(source_directory + "/examples/senders/sender.py"), 0700);
    directory_.write("queues.yaml", "queues:\n  recovery: {actions: [recovery], priority: 10}\n");
    password_ = directory_.write("mailbox.password", "sesame\n", 0600);
    directory_.write("report.eml", "Subject: hello\n\nno report\n");
    directory_.write("mail.eml",
                     "From: shop@app.example\nTo: ada@mail.example\nSubject: hello\n\nIt works.\n");
    directory_.write("report.txt", "It is full.\n");
    std::filesystem::create_directory(directory_.path() / "spool");
    directory_.write("list.csv", "email\nada@mail.example\n");
    for (const auto* part : {"new", "cur", "tmp"})
      std::filesystem::create_directories(directory_.path() / "bounces" / part);
    directory_.write("order.json", R"({"order": 17, "total": "12.00"})");
    directory_.write("templates/receipt.subject", "Your order {{order}}\n");
    directory_.write("templates/receipt.txt", "It costs {{total}}.\n");
  }

  /// Runs `example` to its end and returns its exit status.
  int run(const std::string& example) {
    const auto command = with_values(example);
    const bool endless = runs_on(command);
    const auto program = std::filesystem::path(mailroom_binary).parent_path().string();
    const auto name = std::to_string(++runs_);
    errors_ = (directory_.path() / (name + ".stderr")).string();
    // There is no terminal for a question. With exec, SIGTERM reaches mailroom itself.
    const auto script = "cd " + directory_.path().string() + "; exec </dev/null; " + prepared_for(command) +
                        (endless ? "exec " : "") + command;
    Subprocess process({"/bin/sh", "-c", script},
                       {{"MAILROOM_DATABASE_URL", database_.conninfo()},
                        {"MAILROOM_SECRET_KEY_FILE", key_},
                        {"MAILROOM_SEND_RELAY", relay_.url()},
                        {"MAILROOM_SEND_FROM", "no-reply@app.example"},
                        {"MAILROOM_SEND_LINK", "https://app.example/{action}?token={token}"},
                        {"MAILROOM_SEND_TEMPLATES", "templates"},
                        {"MAILROOM_BOUNCE_PASSWORD_FILE", password_},
                        // A port that is free.
                        {"MAILROOM_DESK_LISTEN", "127.0.0.1:0"},
                        {"MAILROOM_BOUNCE_SNS_TOPICS", "arn:aws:sns:eu-west-1:123456789012:ses-events"},
                        {"PATH", program + ":" + std::getenv("PATH")}},
                       (directory_.path() / (name + ".stdout")).string(), errors_);
    if (endless) {
      INFO("it was to run on, but did not get as far as waiting for SIGTERM: " << errors());
      REQUIRE(eventually([&] { return waits_for_sigterm(process.pid()); }));
      process.signal(SIGTERM);
    }
    return process.wait();
  }

  /// The stderr of the last run.
  std::string errors() const { return read_file(errors_); }

 private:
  /// What the shell does before: a certificate for a service that needs one, and no service for sendmail,
  /// which leaves the mail in the spool.
  static std::string prepared_for(const std::string& command) {
    if (contains(command, "tls.crt"))
      return "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -days 2 "
             "-keyout tls.key -out tls.crt 2>/dev/null; ";
    if (command.starts_with("mailroom sendmail"))
      return "export MAILROOM_SUBMISSION_LISTEN=$PWD/socket=shop MAILROOM_SUBMISSION_SPOOL=$PWD/spool; ";
    return {};
  }

  const TestDatabase& prepared(const std::string& actions) {
    const auto connection = database_.connect();
    connection->run(
        "INSERT INTO accounts (email, login) SELECT 'user' || g || '@mail.example', 'user' || g FROM "
        "generate_series(1, 5) g");
    connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('newsletter', 0)");
    connection->run("INSERT INTO mailroom_queues (name, actions) VALUES ('newsletter', $1::token_action[])",
                    actions);
    // Roles belong to the cluster, where other examples may have made it.
    connection->run("DO $$ BEGIN CREATE ROLE shop; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    connection->run("GRANT EXECUTE ON FUNCTION mailroom_send TO shop");
    connection->run(
        "INSERT INTO mailroom_keys (id, digest, role, permission) VALUES ('re_AbCdE', sha256('key'), 'shop', 'full_access')");
    return database_;
  }

  /// Replaces each placeholder in capitals in `example` by a value.
  std::string with_values(const std::string& example) const {
    static const Pattern to_placeholder("([\\s\\S]*?)\\b([A-Z][A-Z_]+)\\b");
    static const Pattern coded(".*--code (\\d{5}) .*");
    std::map<std::string, std::string> values{{"TOKEN", token_}, {"COMMAND", "collect"}};
    if (const auto match = coded.whole(example)) values["TOKEN"] = recovery_token((*match)[1]);
    std::string command;
    auto rest = Pattern("smtp://localhost").replaced(example, relay_.url());
    // A port that is free, whatever else listens here.
    if (example.starts_with("mailroom submission"))
      rest = Pattern("127\\.0\\.0\\.1:[0-9]+").replaced(rest, "127.0.0.1:0");
    while (const auto match = to_placeholder.at_start(rest)) {
      const auto& name = (*match)[2];
      INFO("the placeholder " << name << " of an example has no value: give it one in with_values() of "
                              << __FILE__);
      REQUIRE(values.count(name) == 1);
      command += (*match)[1] + values[name];
      rest.erase(0, (*match)[0].size());
    }
    return command + rest;
  }

  /// True once `pid` runs mailroom with a StopSignal: what it had before ends the process. Only the pipes of
  /// a StopSignal show that from outside.
  static bool waits_for_sigterm(pid_t pid) {
    const auto process = std::filesystem::path("/proc") / std::to_string(pid);
    std::error_code gone;
    if (!std::filesystem::equivalent(process / "exe", mailroom_binary, gone) || !catches(pid, SIGTERM))
      return false;
    int pipes = 0;
    for (const auto& file : std::filesystem::directory_iterator(process / "fd", gone))
      if (std::filesystem::read_symlink(file.path(), gone).string().starts_with("pipe:")) ++pipes;
    return pipes >= 4;
  }

  TestDatabase database_;
  TemporaryDirectory directory_;
  TestCollector collector_;
  TestCollector second_;
  TestRelay relay_;
  std::string key_;
  std::string password_;
  std::string token_;
  std::string errors_;
  int runs_ = 0;
};

void check_examples(const std::string& of, const char* text) {
  // A queue for recoveries is an example of how to make one; elsewhere it is in the way of no activation.
  World world(of == "queue" ? "{activation}" : "{password_recovery}");
  for (const auto& example : cmd::parse_examples(text).examples) {
    INFO("an example of " << of << ": " << example.command);
    const int status = world.run(example.command);
    INFO(world.errors());
    const bool asks = status == static_cast<int>(ExitCode::declined);
    CHECK((asks ? contains(world.errors(), "there is no terminal to ask on") : status == 0));
  }
}

}  // namespace

TEST_CASE("the examples of every help text work as typed") {
  check_examples("mailroom", cmd::CommandLine().app.get_footer().c_str());
  for (const auto& command : cmd::commands())
    check_examples(command.name, command.examples);
}

}  // namespace mailroom::test::examples_test
