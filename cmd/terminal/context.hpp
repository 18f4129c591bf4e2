// What every command works with: outputs, settings, log and sessions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/output.hpp"
#include "config/settings.hpp"
#include "db/connection.hpp"
#include "db/conninfo.hpp"
#include "db/wait_watch.hpp"
#include "process/stop_signal.hpp"
#include "schema/schema_objects.hpp"
#include "signing/configured_keys.hpp"

namespace mailroom::cmd {

enum class OutputFormat { text, json };
enum class ColourMode { automatic, always, never };

/// The options that every command accepts, before or after its name.
struct GlobalOptions {
  OutputFormat output = OutputFormat::text;
  ColourMode colour = ColourMode::automatic;
  bool quiet = false;
  bool verbose = false;
  bool yes = false;
};

/// The outputs, configuration and log of a command. Holds no process-wide state, so a test can create its
/// own.
class Context {
 public:
  Context(GlobalOptions global, config::Overrides overrides, config::EnvironmentVariables environment);

  const GlobalOptions& global() const { return global_; }
  Output& out() { return out_; }
  Output& err() { return err_; }
  /// Writes text or JSON to stdout, without terminal control sequences other than colours.
  void print(std::string_view text);
  /// print(), with long lines wrapped on a terminal.
  void say(const std::string& text);

  /// The effective configuration, loaded by the first call. Throws Error(configuration).
  const config::Settings& settings();
  /// Loads the configuration again, with or without the file. Throws Error(configuration).
  config::Settings load(config::FileUse use = config::FileUse::read) const;
  /// The log to stderr; the settings, -q and -v determine its level and format.
  Log& log();
  bool colour_on(const Output& output) const;

  /// Warns if --database-url, which every user of the host can read, contains a password.
  void warn_of_visible_password();
  /// Runs `work`. Adds a hint to a ConnectionLost: which database was tried, or how to name one.
  void explain_unreachable(const std::function<void()>& work);
  /// Connects as `mailroom PURPOSE`. Throws ConnectionLost; with `stop` also when it requests a stop
  /// meanwhile.
  std::unique_ptr<db::Connection> connect(const std::string& purpose,
                                          const process::StopSignal* stop = nullptr);
  /// connect(), then throws Error(schema) if this binary cannot work on the schema or the ids are used up,
  /// and Error(failed) if row security hides rows of the tables that the command reads.
  std::unique_ptr<db::Connection> connect_to_schema(
      const std::string& purpose, const std::vector<std::string>& reads = schema::mailroom_tables(),
      const process::StopSignal* stop = nullptr);
  /// While the result exists, warns of the sessions for which the statements of `connection`, which is
  /// connected as `mailroom PURPOSE`, wait for more than a second. Calls `before` ahead of each warning, in
  /// another thread.
  std::unique_ptr<db::WaitWatch> watch_waits(const db::Connection& connection, const std::string& purpose,
                                             std::function<void()> before = {});
  /// Throws Error(configuration) if a pooler shares the locks, settings or prepared statements of
  /// `connection`, which is connected as `mailroom PURPOSE`, with other sessions.
  void require_own_session(db::Connection& connection, const std::string& purpose);

 private:
  GlobalOptions global_;
  config::Overrides overrides_;
  config::EnvironmentVariables environment_;
  Output out_{1};
  Output err_{2};
  std::optional<config::Settings> settings_;
  std::optional<Log> log_;
};

/// True if somebody is there to ask.
bool can_ask(Context& context);

/// Asks `question` on the terminal unless --yes is given. Throws Error(declined) if the answer is not yes or
/// there is no terminal.
void confirm(Context& context, const std::string& question);

/// True for `y` or `yes`, ignoring case and blanks around it.
bool is_yes(std::string_view answer);

}  // namespace mailroom::cmd
