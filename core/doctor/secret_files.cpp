// Looks only at what everyone may read. Loading the secret finds all other faults.

#include "doctor/secret_files.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "base/text.hpp"

namespace mailroom {
namespace {

bool is_readable_by_all(const std::string& path) {
  std::error_code missing;
  const auto status = std::filesystem::status(path, missing);
  return !missing &&
         (status.permissions() & std::filesystem::perms::others_read) != std::filesystem::perms::none;
}

}  // namespace

Findings judge_permissions(const std::string& secret, const std::string& path, bool allowed) {
  if (!is_readable_by_all(path)) return {};
  const auto reason = fmt::format("everyone can read the {} file {}", secret, path);
  const auto fix = "chmod 640 " + shell_word(path);
  if (!allowed) return {failure(reason, {fix})};
  return {warning(reason + ", as signing.allow_readable_key allows", {fix})};
}

bool any_failure(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.verdict == CheckVerdict::failure; });
}

}  // namespace mailroom
