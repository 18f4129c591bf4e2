#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/output.hpp"
#include "config/settings.hpp"
#include "db/connection.hpp"
#include "signing/configured_keys.hpp"

namespace mailroom {

enum class OutputFormat { text, json };
enum class ColourMode { automatic, always, never };

/// What every command accepts, before and after its name.
struct GlobalOptions {
  OutputFormat output = OutputFormat::text;
  ColourMode colour = ColourMode::automatic;
  bool quiet = false;
  bool verbose = false;
  bool yes = false;
};

/// What a command works with. Carries no state of the process, so that a test makes its own.
class Context {
 public:
  Context(GlobalOptions global, Overrides overrides, Environment environment);

  const GlobalOptions& global() const { return global_; }
  Output& out() { return out_; }
  Output& err() { return err_; }
  /// Writes text or JSON to stdout, and of what could steer a terminal nothing but colours.
  void print(std::string_view text);
  /// The same of text for people; on a terminal its long lines are wrapped.
  void say(const std::string& text);

  /// The effective configuration, loaded at the first call. Throws Error(configuration).
  const Settings& settings();
  /// Reads the file anew, or does without it. Throws Error(configuration).
  Settings load(FileUse use = FileUse::read) const;
  /// Logs to stderr, as the settings and -q, -v say.
  Log& log();
  bool colour_on(const Output& output) const;

  /// Warns when the command line, which everyone can see, carries a password.
  void warn_of_visible_password();
  /// Does `work`, and adds to a ConnectionLost which database was tried, or how to name one.
  void explain_unreachable(const std::function<void()>& work);
  /// Connects as `mailroom PURPOSE`.
  std::unique_ptr<Connection> connect(const std::string& purpose);
  /// connect(), and a schema that this binary can work on, with no row hidden.
  std::unique_ptr<Connection> connect_to_schema(const std::string& purpose);
  /// Throws Error(configuration) where a pooler shares with others what `connection`, connected as `mailroom
  /// PURPOSE`, locks, sets or prepares.
  void require_own_session(Connection& connection, const std::string& purpose);

 private:
  GlobalOptions global_;
  Overrides overrides_;
  Environment environment_;
  Output out_{1};
  Output err_{2};
  std::optional<Settings> settings_;
  std::optional<Log> log_;
};

}  // namespace mailroom
