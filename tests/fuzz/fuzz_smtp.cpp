// A relay may answer anything: only a complete 2xx to the end of the message accepts a mail, and no password
// is recorded. Nor is one shown of a relay URL that is refused.

#include <array>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "carriers/smtp/dialogue/dialogue.hpp"
#include "carriers/smtp/refusal/judgement.hpp"
#include "carriers/smtp/refusal/refusal_subject.hpp"
#include "carriers/smtp/refusal/relay_fault.hpp"
#include "carriers/smtp/refusal/relay_wish.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "carriers/smtp/session/envelope.hpp"
#include "config/relay_path.hpp"
#include "delivery/reply_text.hpp"
#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz::fuzz_smtp {
namespace {

constexpr TimePoint start{std::chrono::hours(1)};
/// What the password is recognised by.
constexpr std::string_view mark = "Zx7qKvW9";

void check_record(const std::string& text) {
  const auto recorded = delivery::recorded_reply(text, {std::string(mark)});
  require(recorded.size() <= 200, "a recorded reply is short");
  require(is_printable(recorded), "a recorded reply is printable");
  require(recorded.find(mark) == std::string::npos, "a recorded reply has no password");
  const auto delay = delivery::named_delay(text);
  require(!delay || (delay->count() > 0 && delay->count() <= 86'400), "a delay is within its bounds");
  for (const int code : {450, 454, 432, 550}) {
    smtp::relay_wish(smtp::SmtpStep::end, code, smtp::own_words(text, "user@mail.example"));
    smtp::is_configured_wish(code, text, {text, "4.7"});
  }
}

/// Plays the lines as the replies to the commands of one mail, each command with the line after which it is
/// sent.
void check_dialogue(std::string_view lines) {
  constexpr std::array<std::string_view, 6> commands{
      "EHLO a\r\n", "AUTH PLAIN\r\n", "MAIL FROM:<a@b>\r\n", "RCPT TO:<c@d>\r\n", "DATA\r\n", ""};
  smtp::Dialogue dialogue({.timeout = Milliseconds(1), .at_end = Milliseconds(2), .wants_auth = false});
  dialogue.begin(start);
  dialogue.connecting(start);
  std::size_t next = 0;
  while (!lines.empty()) {
    const auto size = std::min(lines.find('\n'), lines.size() - 1) + 1;
    dialogue.received(lines.substr(0, size));
    lines.remove_prefix(size);
    if (dialogue.exchange().code == 0 || next == commands.size()) continue;
    if (commands[next].empty()) dialogue.message_ended(start);
    dialogue.sent(commands[next++], start);
  }
  const auto& exchange = dialogue.exchange();
  const bool is_accepted = exchange.step == smtp::SmtpStep::end && exchange.code / 100 == 2;
  require((smtp::judge(exchange).verdict == delivery::Verdict::accepted) == is_accepted,
          "only 2xx at the end accepts a mail");
  require(exchange.code == 0 || dialogue.reply().code() == exchange.code, "the code is that of the reply");
  check_record(dialogue.reply().text());
}

void check_url(const std::string& text) {
  try {
    for (const auto& target : config::parse_relays(text)) {
      const auto relay = smtp::parse_relay_url(target.url);
      require(relay.user.find(mark) == std::string::npos, "a password is no user");
      require(relay.host.find(mark) == std::string::npos, "a password is no host");
    }
  } catch (const Error& error) {
    require(!error.hint().empty(), "a refusal has a hint");
    require(std::string(error.what()).find(mark) == std::string::npos, "a refusal shows no password");
  }
}

int run(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  check_dialogue(fields.take());
  const std::string before(fields.take());
  const std::string after(fields.take());
  check_record(before + std::string(mark) + after);
  // A host may be called as the password is.
  if ((before + after).find(mark) != std::string::npos) return 0;
  check_url("smtp://" + before + ":" + std::string(mark) + after);
  return 0;
}

const Target target("smtp", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_smtp
