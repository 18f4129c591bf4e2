// mailroom verify: whether a token is genuine, and what the database records of it.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <iostream>
#include <limits>

#include "base/text.hpp"
#include "cmd/command.hpp"
#include "cmd/verify/verify_report.hpp"
#include "queue/action.hpp"

namespace mailroom::cmd {
namespace {

/// More than `TOKEN,CODE` needs: a longer line is not a token, and is not buffered.
constexpr std::size_t max_line = 4096;
/// How many lines are looked up together, if so many have arrived: one statement for all.
constexpr std::size_t max_lines = 1000;

struct VerifyOptions {
  std::string token;
  std::optional<std::string> code;
  bool offline = false;
  bool show_code = false;
};

/// Judges tokens by the keys and, if `connection` is not null, by the database.
class TokenJudge {
 public:
  TokenJudge(const crypto::KeyRing& ring, queue::Actions known, db::Connection* connection)
      : actions_(std::move(known)), verifier_(ring, actions_.signed_paths()), connection_(connection) {}

  /// Judges by the keys only.
  VerifyFinding check(std::string_view pasted, std::optional<std::string_view> code) {
    VerifyFinding finding;
    const auto text = trimmed(pasted);
    if (code) code = trimmed(*code);
    const auto token = crypto::decode_token(text);
    if (!token) {
      finding.defect =
          text.size() == crypto::token_size
              ? "a character that is not allowed there in unpadded base64url"
              : fmt::format("{} characters, and a token has {}", text.size(), crypto::token_size);
      return finding;
    }
    finding.code_given = code.has_value();
    finding.verdict = verifier_.verify(*token, code, true);
    if (finding.verdict) finding.action = actions_.find_path(finding.verdict->path)->name;
    finding.secret = token->secret;
    return finding;
  }

  /// Adds what the database records of the genuine ones.
  void look_up(std::vector<VerifyFinding>& findings, bool with_emissions) {
    if (connection_ == nullptr) return;
    std::vector<accounts::TokenName> names;
    std::vector<VerifyFinding*> genuine;
    for (auto& finding : findings) {
      if (!finding.verdict) continue;
      names.push_back({.secret = finding.secret, .action = finding.action});
      genuine.push_back(&finding);
    }
    if (names.empty()) return;
    auto records = accounts::find_tokens(*connection_, names, with_emissions);
    for (std::size_t i = 0; i < genuine.size(); ++i) {
      genuine[i]->asked_database = true;
      genuine[i]->record = std::move(records[i]);
    }
  }

 private:
  queue::Actions actions_;
  crypto::Verifier verifier_;
  db::Connection* connection_;
};

/// The higher of two exit codes: of 0, 8 and 9 the highest is the result.
ExitCode worse(ExitCode a, ExitCode b) {
  return static_cast<int>(a) > static_cast<int>(b) ? a : b;
}

/// Reads lines of `TOKEN` or `TOKEN,CODE` from stdin, and answers those that have arrived.
class LineVerifier {
 public:
  LineVerifier(TokenJudge& token_judge, Context& context, bool show_code)
      : judge_(token_judge), context_(context), show_code_(show_code) {}

  ExitCode run() {
    // std::cin then reads ahead, and knows whether more has arrived.
    std::ios::sync_with_stdio(false);
    std::array<char, max_line + 2> line{};
    while (std::cin.getline(line.data(), line.size()) || std::cin.gcount() > 0) {
      const auto newline = std::cin.good() ? 1 : 0;
      findings_.push_back(check({line.data(), static_cast<std::size_t>(std::cin.gcount() - newline)}));
      if (std::cin.fail() && !std::cin.bad()) {
        // The line is longer.
        std::cin.clear();
        std::cin.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
      }
      if (findings_.size() >= max_lines || std::cin.rdbuf()->in_avail() <= 0) answer();
    }
    if (std::cin.bad())
      throw Error(ExitCode::failed, std::string("cannot read stdin: ") + std::strerror(errno));
    answer();
    return worst_;
  }

 private:
  /// Writes unfiltered: the answers are fixed text, digits and escaped JSON.
  void answer() {
    const bool json = context_.global().output == OutputFormat::json;
    judge_.look_up(findings_, json);
    std::string answers;
    for (const auto& finding : findings_) {
      worst_ = worse(worst_, judge(finding));
      answers += json ? render_json(finding, show_code_) : text_of(finding);
    }
    findings_.clear();
    context_.out().write(answers);
  }

  VerifyFinding check(std::string_view line) {
    if (line.size() > max_line) {
      VerifyFinding finding;
      finding.defect = fmt::format("a line of more than {} bytes", max_line);
      return finding;
    }
    const auto comma = line.find(',');
    std::optional<std::string_view> code;
    if (comma != std::string_view::npos) code = line.substr(comma + 1);
    return judge_.check(line.substr(0, comma), code);
  }

  std::string text_of(const VerifyFinding& finding) const {
    auto text = verdict_word(finding);
    if (finding.verdict) text += "," + finding.action;
    if (show_code_ && finding.verdict && !finding.verdict->code.empty()) text += "," + finding.verdict->code;
    return text + '\n';
  }

  TokenJudge& judge_;
  Context& context_;
  bool show_code_;
  std::vector<VerifyFinding> findings_;  ///< not answered yet
  ExitCode worst_ = ExitCode::done;
};

ExitCode run_verify(const VerifyOptions& options, Context& context) {
  if (options.code && trimmed(*options.code).size() != crypto::code_size) {
    throw Error(
        ExitCode::usage,
        fmt::format("--code has {} characters, and a code has {}", options.code->size(), crypto::code_size),
        "omit --code to try all codes");
  }
  const auto ring = signing::load_key_ring(context.settings());
  const auto connection = options.offline ? nullptr : context.connect_to_schema("verify");
  const auto waits = connection ? context.watch_waits(*connection, "verify") : nullptr;
  TokenJudge token_judge(ring, connection ? queue::read_actions(*connection) : queue::Actions::built_in(),
                         connection.get());
  if (options.token == "-") return LineVerifier(token_judge, context, options.show_code).run();

  const bool marked = !options.token.empty() && options.token.front() == token_mark;
  std::vector<VerifyFinding> findings{
      token_judge.check(std::string_view(options.token).substr(marked ? 1 : 0), options.code)};
  token_judge.look_up(findings, true);
  const auto& finding = findings.front();
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? render_json(finding, options.show_code) : render_text(finding, options.show_code));
  return judge(finding);
}

Run add_verify(CommandSyntax& syntax) {
  auto options = std::make_shared<VerifyOptions>();
  syntax.text("TOKEN", options->token, "verify this token, or with - lines of TOKEN or TOKEN,CODE from stdin")
      .required();
  syntax.flag("--offline", options->offline,
              "judge by the keys only, without the database: tokens of activation and recovery");
  syntax.text("--code CODE", options->code, "try only this code, of a token whose action has one (else all)");
  syntax.flag("--show-code", options->show_code, "show the code that was found");
  return [options](Context& context) { return run_verify(*options, context); };
}

}  // namespace

const Command verify_command{
    "verify", "check whether a token is genuine, and show its status",
    "Examples:\n"
    "  mailroom verify TOKEN                        check keys and database\n"
    "  mailroom verify --offline --code 06435 TOKEN\n"
    "  mailroom verify - < tokens.txt               many at once, an answer per line\n",
    add_verify,
    "Checks whether a token was signed with the current key or a previous one, and shows its action and "
    "what the database records of it: its account, when it expires, whether it is consumed, and which batch "
    "emitted it and when; of a message, its recipient and its reference. --offline checks the keys only and needs no "
    "database; it knows the actions that every database has.\n\n"
    "The signature of a recovery token covers its code, and so does that of every action with a code. Without --code all "
    "100,000 codes are tried, which takes some hundredths of a second; with --code such a token is genuine with that code "
    "only. The code that was found is shown only with --show-code.\n\n"
    "With - instead of the token, verify reads lines of TOKEN or TOKEN,CODE from standard input and answers "
    "each with a line as soon as it has arrived; those that have arrived together are looked up together. The exit status is that of the worst answer: 9 if one is "
    "malformed or forged, 8 if one is genuine but not usable or not in this database, else 0."};

}  // namespace mailroom::cmd
