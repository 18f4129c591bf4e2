// The output and the exit code of verify for one token.
#pragma once

#include <optional>
#include <string>

#include "accounts/token_lookup.hpp"
#include "base/error.hpp"
#include "crypto/key_ring.hpp"

namespace mailroom::cmd {

/// The result of verifying one token.
struct VerifyFinding {
  std::string defect;                           ///< why the text is not a token; empty if it is one
  std::optional<crypto::GenuineToken> verdict;  ///< nullopt if no key signed it
  std::string action{};                         ///< of the verdict, as the database names it
  crypto::Secret secret{};                      ///< if the text is a token
  bool code_given = false;
  bool asked_database = false;
  std::optional<accounts::TokenRecord> record;
};

/// 9 malformed or forged, 8 genuine but not usable or not found, 0 otherwise.
ExitCode judge(const VerifyFinding& finding);

/// `genuine`, `usable`, `expired`, `consumed`, `wrong status`, `not found`, `forged` or `malformed`.
std::string verdict_word(const VerifyFinding& finding);

/// Lines of `label: value`, aligned; the code only with `show_code`.
std::string render_text(const VerifyFinding& finding, bool show_code);
std::string render_json(const VerifyFinding& finding, bool show_code);

}  // namespace mailroom::cmd
