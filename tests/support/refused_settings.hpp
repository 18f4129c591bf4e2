#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/settings.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test {

/// Loads the settings, and expects exactly this error.
inline void check_refused(const config::Overrides& overrides, const config::EnvironmentVariables& environment,
                          const std::string& message, const std::string& hint) {
  INFO(message);
  try {
    config::load_settings(overrides, environment);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.what() == message);
    CHECK(error.hint() == hint);
    // An invalid flag is a usage error; an invalid file or variable is a configuration error.
    CHECK(error.code() == (overrides.flags.empty() ? ExitCode::configuration : ExitCode::usage));
  }
}

/// Settings that are refused: `file` is mailroom.yaml.
struct RefusedSettings {
  std::string file;
  config::EnvironmentVariables environment;
  std::vector<config::Overrides::Flag> flags;
  std::string message;
  std::string hint;
};

inline void check_all_refused(const std::vector<RefusedSettings>& cases) {
  const WorkingDirectory directory;
  for (const auto& refused : cases) {
    directory.write("mailroom.yaml", refused.file);
    check_refused({std::nullopt, refused.flags}, refused.environment, refused.message, refused.hint);
  }
}

/// A mailroom.yaml that is refused.
struct RefusedFile {
  std::string file, message, hint;
};

inline void check_files_refused(const std::vector<RefusedFile>& cases) {
  std::vector<RefusedSettings> all;
  for (const auto& [file, message, hint] : cases)
    all.push_back({file, {}, {}, message, hint});
  check_all_refused(all);
}

}  // namespace mailroom::test
