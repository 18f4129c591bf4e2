#pragma once

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <functional>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "crypto/key_ring.hpp"
#include "support/actions.hpp"
#include "support/catch.hpp"
#include "support/code_blocks.hpp"
#include "support/documented_roles.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test {

inline const std::string redeeming_document = "docs/redeeming.md";

/// What an application is asked to redeem, `copies` times at once, with the keys that it accepts.
struct Redemption {
  const queue::Action* action = activation_action();
  std::string token{};
  std::string code{};
  int copies = 1;
  std::vector<std::string> keys{test_key};
};

/// Results, sorted: `redeemed ACCOUNT`, a reason, or `raised …`.
using Results = std::vector<std::string>;

/// A secret as a value of bytea.
inline std::string bytea(const crypto::Secret& secret) {
  std::string text = "\\x";
  for (const auto byte : secret)
    text += fmt::format("{:02x}", byte);
  return text;
}

/// A database with the documented redeemer, and the table of the document. An application connects as that
/// role, and can store passwords.
class RedeemingDatabase {
 public:
  RedeemingDatabase() {
    const auto role = roles_.name("redeemer");
    owner().run(Pattern("mailroom_redeemer")
                    .replaced(code_block(redeeming_document, "sql", "CREATE TABLE recovery_attempts"), role));
    owner().run("CREATE TABLE passwords (account bigint)");
    owner().run(fmt::format("GRANT INSERT ON passwords TO {}", role));
  }

  db::Connection& owner() const { return roles_.owner(); }
  const std::string& name() const { return database_.name(); }
  std::string user() const { return roles_.name("redeemer") + "_login"; }
  std::string conninfo() const { return roles_.conninfo("redeemer"); }

 private:
  TestDatabase database_;
  DocumentedRoles roles_{database_};
};

/// The statements of docs/redeeming.md, after mailroom's own verification.
class SqlApplication {
 public:
  explicit SqlApplication(const RedeemingDatabase& database) : database_(database) {}

  Results redeem(const Redemption& redemption) const {
    std::vector<std::thread> threads;
    Results results;
    std::mutex mutex;
    for (int copy = 0; copy < redemption.copies; ++copy) {
      threads.emplace_back([&] {
        const auto result = redeem_once(redemption);
        const std::lock_guard lock(mutex);
        results.push_back(result);
      });
    }
    for (auto& thread : threads)
      thread.join();
    return results;
  }

 private:
  std::string redeem_once(const Redemption& redemption) const {
    try {
      db::Connection connection(database_.conninfo(), "test");
      const auto token = crypto::decode_token(redemption.token);
      if (!token) return "invalid";
      if (redemption.action == recovery_action() && !admits(connection, token->secret)) return "invalid";
      if (!is_genuine(redemption, *token)) return "invalid";
      return connection.transact([&](auto& work) { return consume(work, redemption.action, token->secret); });
    } catch (const std::exception& error) {
      return std::string("raised ") + error.what();
    }
  }

  static bool admits(db::Connection& connection, const crypto::Secret& secret) {
    return !connection
                .run(code_block(redeeming_document, "sql", "INSERT INTO recovery_attempts"), bytea(secret))
                .empty();
  }

  static bool is_genuine(const Redemption& redemption, const crypto::DecodedToken& token) {
    const auto& keys = redemption.keys;
    return std::any_of(keys.begin(), keys.end(), [&](const auto& key) {
      crypto::Hmac hmac(crypto::Key::from_hex(key, "the test"));
      return crypto::is_signed(
          hmac, token, redemption.action->path,
          redemption.action->has_code ? std::string_view(redemption.code) : std::string_view());
    });
  }

  static std::string consume(pqxx::transaction_base& work, const queue::Action* action,
                             const crypto::Secret& secret) {
    const auto rows = db::Connection::execute(work, statement("RETURNING t.account", action), bytea(secret));
    if (rows.empty()) {
      const auto reason = db::Connection::execute(work, statement("'consumed'", action), bytea(secret));
      return reason.empty() ? "not found" : reason[0][0].c_str();
    }
    const auto account = rows[0][0].as<std::string>();
    if (action == recovery_action())
      db::Connection::execute(work, "INSERT INTO passwords (account) VALUES ($1)", account);
    return "redeemed " + account;
  }

  /// The statement with `part`, for a recovery changed as the document says.
  static std::string statement(const std::string& part, const queue::Action* action) {
    auto sql = code_block(redeeming_document, "sql", part);
    if (action == activation_action()) return sql;
    sql = Pattern("'activation'").replaced(sql, "'password_recovery'");
    return Pattern("'provisioned'").replaced(sql, "'active'");
  }

  const RedeemingDatabase& database_;
};

/// A program that calls the functions of examples/redeeming, and takes requests until it is killed: to start
/// it takes longer than to redeem.
class ProgramApplication {
 public:
  /// `interpreter` is the start of the command; `suffix` is of the files in tests/integration/redeeming and
  /// of the example.
  ProgramApplication(const RedeemingDatabase& database, std::vector<std::string> interpreter,
                     const std::string& suffix, std::vector<std::string> library)
      : command_(std::move(interpreter)) {
    const auto driver = "drive" + suffix;
    directory_.write("redeeming" + suffix,
                     read_file(source_directory + "/examples/redeeming/redeeming" + suffix));
    command_.push_back(
        directory_.write(driver, read_file(source_directory + "/tests/integration/redeeming/" + driver)));
    command_.insert(command_.end(), library.begin(), library.end());
    const std::string requests = directory_.path() / "requests";
    if (mkfifo(requests.c_str(), 0600) != 0) throw std::runtime_error("cannot make " + requests);
    // For both: it neither waits for the program nor shows it an end.
    requests_ = open(requests.c_str(), O_RDWR | O_CLOEXEC);
    command_.push_back(requests);
    // A Node.js that is not Debian's searches neither; scripts/install-packages fills the second one for it.
    process_.emplace(
        command_,
        std::map<std::string, std::string>{{"PGDATABASE", database.name()},
                                           {"PGUSER", database.user()},
                                           {"PYTHONDONTWRITEBYTECODE", "1"},
                                           {"NODE_PATH", "/usr/share/nodejs:/usr/local/share/nodejs"}},
        output_, errors_);
  }
  ~ProgramApplication() { close(requests_); }
  ProgramApplication(const ProgramApplication&) = delete;
  ProgramApplication& operator=(const ProgramApplication&) = delete;

  Results redeem(const Redemption& redemption) {
    const auto before = lines_of(read_file(output_)).size();
    const auto asked = static_cast<std::size_t>(redemption.copies);
    ask(redemption);
    std::vector<std::string> lines;
    eventually([&] {
      const bool ended = process_->has_ended();
      lines = lines_of(read_file(output_));
      return ended || lines.size() >= before + asked;
    });
    if (lines.size() != before + asked) {
      return {fmt::format(
          "the program {} printed {} results of {}: {}\nhint: scripts/install-packages --tests installs "
          "python3-psycopg2, python3-psycopg, nodejs and node-pg",
          command_.front(), lines.size() - before, asked, read_file(errors_))};
    }
    Results results;
    for (auto line = lines.begin() + static_cast<std::ptrdiff_t>(before); line != lines.end(); ++line)
      results.push_back(line->substr(0, line->find_last_not_of(' ') + 1));
    return results;
  }

  /// Of a program that ends at this request.
  FinishedRun end_at(const Redemption& redemption) {
    ask(redemption);
    const int status = process_->wait();
    return {.status = status, .output = read_file(output_), .errors = read_file(errors_)};
  }

 private:
  void ask(const Redemption& redemption) {
    auto keys = nlohmann::json::array();
    for (const auto& key : redemption.keys)
      keys.push_back(directory_.write(fmt::format("key{}", keys.size()), key + "\n"));
    const auto line = ascii_json(nlohmann::json{{"action", redemption.action->name},
                                                {"token", redemption.token},
                                                {"code", redemption.code},
                                                {"copies", redemption.copies},
                                                {"keys", keys}}) +
                      "\n";
    if (write(requests_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("a request was not written");
  }

  std::vector<std::string> command_;
  TemporaryDirectory directory_;
  std::string output_ = directory_.path() / "output";
  std::string errors_ = directory_.path() / "errors";
  int requests_ = -1;
  std::optional<Subprocess> process_;
};

}  // namespace mailroom::test
