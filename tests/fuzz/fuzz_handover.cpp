// What other sides answer: lines of a program, Retry-After and JSON of an HTTP server, errors and credentials
// of AWS, errors of Resend. And the command of a program.

#include "carriers/exec/carrier.hpp"
#include "carriers/http/answer.hpp"
#include "carriers/resend/answer.hpp"
#include "carriers/ses/answer.hpp"
#include "carriers/ses/carrier.hpp"
#include "carriers/ses/credentials.hpp"
#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz::fuzz_handover {
namespace {

void read_line(std::string_view line) {
  const auto answer = exec::parse_exec_answer(line);
  if (!answer) return;
  require(!answer->batch.empty() && answer->batch.find(' ') == std::string::npos, "a batch is one word");
  require(line.find(answer->batch) != std::string_view::npos, "a batch is part of its line");
  require(!answer->token || answer->verdict != delivery::Verdict::accepted, "only a failure names a token");
  require(answer->text.size() < line.size(), "a text is shorter than its line");
}

void read_json(std::string_view body) {
  for (const auto& token : http::parse_token_outcomes(body)) {
    require(token.verdict != delivery::Verdict::unknown && token.verdict != delivery::Verdict::unavailable,
            "a server names only outcomes that it can know");
    require(token.reason.size() <= body.size(), "a reason is part of the answer");
  }
}

void read_wait(std::string_view text) {
  const auto wait = http::parse_retry_after(text, 0);
  require(!wait || (*wait >= Milliseconds(0) && *wait <= std::chrono::hours(24)), "a wait is at most a day");
}

void read_command(std::string_view command) {
  const auto words = exec::command_words(command);
  if (!words) return;
  std::string quoted;
  for (const auto& word : *words) {
    quoted += " '";
    for (const char c : word)
      quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    quoted += "'";
  }
  require(exec::command_words(quoted) == words, "quoted words are the same words");
}

void read_provider(std::string_view text) {
  for (const int status : {0, 200, 301, 400, 403, 429, 503}) {
    http::HttpOutcome outcome;
    outcome.end = http::HttpEnd::answered;
    outcome.response.status = status;
    outcome.response.body = text;
    outcome.response.headers["date"] = text;
    outcome.response.headers["x-amzn-errortype"] = text.substr(0, text.find('\n'));
    for (const auto& answer :
         {ses::judge_ses(outcome, "ada@example.org", 0), resend::judge_resend(outcome, {1}, 0),
          resend::judge_resend(outcome, {1, 2}, 0)}) {
      require(answer.verdict != delivery::Verdict::accepted || status == 200, "only a 200 accepts");
      require(answer.throttled == answer.waits_for_turn, "a mail that came too fast waits for its turn");
      require(!answer.throttled || answer.verdict == delivery::Verdict::deferred,
              "a mail that came too fast comes again");
      require(answer.tokens.empty() || answer.tokens.size() == 2, "of several mails all or none are named");
    }
  }
  ses::judge_ses_account(text);
  ses::is_verified_identity(text);
}

void read_credentials(std::string_view text) {
  for (const auto parse : {ses::parse_credentials_file, ses::parse_role_credentials}) {
    try {
      const auto credentials = parse(text, "x");
      for (const char c : credentials.key_id + credentials.secret + credentials.session_token)
        require(c > ' ' && c < 0x7f, "credentials can stand in a header");
    } catch (const Error& error) {
      require(error.what() == std::string("x has no AWS credentials"), "an error shows nothing of the text");
    }
  }
}

int run(const std::uint8_t* data, std::size_t size) {
  const auto text = text_of(data, size);
  read_line(text);
  read_json(text);
  read_wait(text);
  read_command(text);
  read_provider(text);
  read_credentials(text);
  return 0;
}

const Target target("handover", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_handover
