#pragma once

#include <algorithm>

#include "doctor/subject.hpp"
#include "support/catch.hpp"
#include "support/test_database.hpp"

namespace mailroom::status {

/// For tests that say which commands are printed.
inline bool operator==(const std::vector<Fix>& fixes, const std::vector<std::string>& commands) {
  return std::vector<std::string>(fixes.begin(), fixes.end()) == commands;
}

}  // namespace mailroom::status

namespace mailroom::test {

/// A doctor for one database, configured only by environment variables.
class DoctorRig {
 public:
  explicit DoctorRig(const TestDatabase& database) {
    environment["MAILROOM_DATABASE_URL"] = database.conninfo();
    environment["MAILROOM_SECRET_KEY"] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  }

  doctor::Findings examine() const {
    return doctor::examine(
        {.load = [this](config::FileUse use) { return config::load_settings(overrides, environment, use); },
         .now = now,
         .application_role = application_role});
  }

  /// The findings of one check.
  doctor::Findings examine(const std::string& check) const {
    auto findings = examine();
    std::erase_if(findings, [&](const doctor::Finding& finding) { return finding.check != check; });
    return findings;
  }

  config::EnvironmentVariables environment;
  config::Overrides overrides;
  std::string application_role;
  std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
};

inline bool all_fine(const doctor::Findings& findings) {
  return !findings.empty() &&
         std::all_of(findings.begin(), findings.end(), [](const doctor::Finding& finding) {
           return finding.verdict == doctor::CheckVerdict::ok;
         });
}

/// `warning: reason; failure: reason`, for messages and comparison.
inline std::string summary(const doctor::Findings& findings) {
  std::string text;
  for (const auto& finding : findings) {
    if (!text.empty()) text += "; ";
    text += std::string(doctor::verdict_word(finding.verdict)) + ": " + finding.reason;
  }
  return text;
}

/// Runs the SQL fixes of the findings, in a session whose search_path finds none of our objects; returns true
/// if there was any.
inline bool run_fixes(db::Connection& connection, const doctor::Findings& findings) {
  bool any = false;
  for (const auto& finding : findings) {
    for (const auto& command : finding.fix) {
      if (!command.ends_with(';')) continue;
      connection.run("SET search_path = pg_catalog");
      connection.run(command);
      connection.run("RESET search_path");
      any = true;
    }
  }
  return any;
}

/// Checks that `check`, which found nothing, reports `verdict` after `break_it`, and nothing after the
/// finding's fix.
inline void check_next_fixing(db::Connection& connection, const DoctorRig& rig, const std::string& check,
                              doctor::CheckVerdict verdict, const std::string& break_it) {
  INFO(check << ": " << break_it);
  connection.run(break_it);
  const auto findings = rig.examine(check);
  INFO(summary(findings));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == verdict);
  REQUIRE(run_fixes(connection, findings));
  REQUIRE(all_fine(rig.examine(check)));
}

/// Checks that `check` finds nothing, reports `verdict` after `break_it`, and nothing after the finding's
/// fix.
inline void check_fixing(db::Connection& connection, const DoctorRig& rig, const std::string& check,
                         doctor::CheckVerdict verdict, const std::string& break_it) {
  INFO(check << ": " << break_it);
  REQUIRE(all_fine(rig.examine(check)));
  check_next_fixing(connection, rig, check, verdict, break_it);
}

}  // namespace mailroom::test
