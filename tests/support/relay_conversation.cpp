#include "support/relay_conversation.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <vector>

#include "base/text.hpp"

namespace mailroom::test {
namespace {

std::string base64(const std::string& text) {
  std::vector<unsigned char> encoded(4 * (text.size() / 3 + 1) + 1);
  const std::vector<unsigned char> bytes(text.begin(), text.end());
  const int size = EVP_EncodeBlock(encoded.data(), bytes.data(), static_cast<int>(bytes.size()));
  return {encoded.begin(), encoded.begin() + size};
}

std::string verb_of(const std::string& line) {
  auto verb = line.substr(0, line.find(' '));
  std::transform(verb.begin(), verb.end(), verb.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return verb;
}

/// What stands between the first `<` and the last `>`.
std::string within_brackets(const std::string& line) {
  const auto from = line.find('<') + 1;
  return line.substr(from, line.rfind('>') - from);
}

}  // namespace

RelayConversation::RelayConversation(TestRelay& server, int socket, int number)
    : server_(server), options_(server.options_), stream_(socket, server.stop_) {
  moment_.connection = number;
  mail_.connection = number;
}

void RelayConversation::hold() {
  if (options_.implicit_tls && !stream_.start_tls(*options_.certificate)) return;
  if (!answer(RelayStep::greeting, "220 test relay")) return;
  std::string line;
  while (stream_.read_line(line)) {
    record(line);
    if (!take_line(line)) return;
  }
}

void RelayConversation::record(const std::string& line) {
  const std::lock_guard lock(server_.mutex_);
  server_.commands_.push_back(fmt::format("{} {}", moment_.connection, line));
}

bool RelayConversation::answer(RelayStep step, const std::string& usual) {
  return give(ask(step, usual));
}

RelayAnswer RelayConversation::ask(RelayStep step, const std::string& usual) {
  moment_.step = step;
  auto answer = options_.play(moment_);
  if (!answer.text) answer.text = usual;
  refused_ = answer.text->starts_with('4') || answer.text->starts_with('5');
  return answer;
}

bool RelayConversation::give(const RelayAnswer& answer) {
  if (answer.delay.count() > 0 && !stream_.pause(answer.delay)) return false;
  if (answer.is_late && !stream_.wait_for_client()) return false;
  const auto& text = *answer.text;
  bool written = text.empty() || stream_.write(text + (answer.has_line_end ? "\r\n" : ""));
  if (answer.unasked) {
    written = stream_.write(answer.unasked() + "\r\n") && written;
    ++server_.unasked_;
  }
  return finish(answer.then) && written;
}

bool RelayConversation::finish(Then then) {
  if (then == Then::hang) stream_.wait_for_close();
  if (then == Then::reset) stream_.reset_on_close();
  return then == Then::go_on;
}

bool RelayConversation::take_line(const std::string& line) {
  const auto verb = verb_of(line);
  if (verb == "EHLO" || verb == "HELO") return greet_client();
  if (verb == "STARTTLS") return start_tls();
  if (verb == "AUTH") return authenticate(line);
  if (verb == "MAIL" || verb == "RCPT") return take_envelope(verb, line);
  if (verb == "DATA") return take_message();
  if (verb == "BDAT" && options_.chunks != Chunks::none) return take_chunk(line);
  if (verb == "QUIT") {
    stream_.write("221 bye\r\n");
    return false;
  }
  if (verb == "RSET" && options_.is_deaf_to_rset) return true;
  if (verb == "RSET") has_sender_ = has_recipient_ = false;
  if (verb == "RSET") return stream_.write(options_.rset_reply + "\r\n");
  return stream_.write(verb == "NOOP" ? "250 ok\r\n" : "502 what\r\n");
}

bool RelayConversation::greet_client() {
  std::string offers = "250-test relay\r\n";
  if (options_.offers_starttls && !stream_.is_encrypted()) offers += "250-STARTTLS\r\n";
  if (!options_.user.empty()) offers += "250-AUTH " + options_.mechanisms + "\r\n";
  if (options_.offers_smtputf8) offers += "250-SMTPUTF8\r\n";
  if (options_.offers_pipelining) offers += "250-PIPELINING\r\n";
  if (options_.chunks != Chunks::none) offers += "250-CHUNKING\r\n";
  if (options_.offers_8bitmime) offers += "250-8BITMIME\r\n";
  if (options_.in_lower_case) offers = lower_case(offers);
  return answer(RelayStep::ehlo, offers + "250 HELP");
}

bool RelayConversation::start_tls() {
  const auto reply = ask(RelayStep::starttls, "220 go ahead");
  if (!give(reply)) return false;
  const auto* certificate = reply.certificate != nullptr ? reply.certificate : options_.certificate;
  return refused_ || stream_.start_tls(*certificate);
}

/// What the client says for `line`, an AUTH command: all its answers joined by blanks.
bool RelayConversation::read_answers(const std::string& line, const std::string& mechanism,
                                     std::string& answers) {
  const int count = mechanism == "LOGIN" ? 2 : 1;
  answers = line.substr(std::min(line.find(' ', 5), line.size()));
  if (answers.starts_with(' ')) answers.erase(0, 1);
  for (int i = answers.empty() ? 0 : 1; i < count; ++i) {
    std::string answer;
    if (!stream_.write("334 \r\n") || !stream_.read_line(answer)) return false;
    answers += (answers.empty() ? "" : " ") + answer;
  }
  return true;
}

std::string RelayConversation::right_answers(const std::string& mechanism) const {
  const std::string nul(1, '\0');
  if (mechanism == "PLAIN") return base64(nul + options_.user + nul + options_.password);
  if (mechanism == "LOGIN") return base64(options_.user) + " " + base64(options_.password);
  return base64("user=" + options_.user + "\x01" + "auth=Bearer " + options_.token + "\x01\x01");
}

bool RelayConversation::authenticate(const std::string& line) {
  const auto mechanism = line.substr(5, line.find(' ', 5) - 5);
  std::string answers;
  if (!read_answers(line, mechanism, answers)) return false;
  const bool works = options_.works.empty() || options_.works == mechanism;
  const bool fits = works && answers == right_answers(mechanism);
  std::string acknowledgement;
  const auto error = "334 " + base64("{\"status\":\"401\"}") + "\r\n";
  if (mechanism == "XOAUTH2" && !fits && (!stream_.write(error) || !stream_.read_line(acknowledgement)))
    return false;
  if (!answer(RelayStep::auth, fits ? "235 welcome" : "535 5.7.8 wrong user or password")) return false;
  if (fits && !refused_) user_ = options_.user;
  return true;
}

bool RelayConversation::take_envelope(const std::string& verb, const std::string& line) {
  if (verb == "MAIL") {
    if (has_sender_) return stream_.write("503 5.5.1 nested MAIL\r\n");
    ++moment_.mail;
    mail_.from = line.substr(std::min(line.find(':') + 1, line.size()));
    const bool goes_on = answer(RelayStep::mail, "250 2.1.0 ok");
    has_sender_ = !refused_;
    return goes_on;
  }
  if (!has_sender_) return stream_.write("503 5.5.1 MAIL first\r\n");
  mail_.to = within_brackets(line);
  moment_.recipient = mail_.to;
  const bool goes_on = answer(RelayStep::rcpt, "250 2.1.5 ok");
  has_recipient_ = !refused_;
  return goes_on;
}

bool RelayConversation::take_message() {
  if (!has_recipient_) {
    if (!options_.takes_empty_messages) return stream_.write("503 5.5.1 RCPT first\r\n");
    std::string none;
    return stream_.write("354 go ahead\r\n") && read_message(none) &&
           stream_.write("554 5.5.1 no valid recipients\r\n");
  }
  if (!answer(RelayStep::data, "354 go ahead")) return false;
  if (refused_) return true;
  if (!answer(RelayStep::body, "")) return false;
  mail_.message.clear();
  if (!read_message(mail_.message)) return false;
  if (options_.forgets_input) stream_.forget_input();
  return end_message();
}

/// `BDAT 6 LAST`
bool RelayConversation::take_chunk(const std::string& line) {
  if (options_.chunks == Chunks::refused) return stream_.write("500 5.5.1 what\r\n");
  const char* const first = has_sender_ ? "RCPT" : "MAIL";
  const auto refuse = [&] { return stream_.write(fmt::format("503 5.5.1 {} first\r\n", first)); };
  if (!has_recipient_ && options_.chunks == Chunks::read_as_commands) return refuse();
  if (!stream_.read_bytes(mail_.message, std::stoul(line.substr(5)))) return false;
  return has_recipient_ ? end_message() : refuse();
}

bool RelayConversation::end_message() {
  has_sender_ = has_recipient_ = false;
  mail_.encrypted = stream_.is_encrypted();
  mail_.user = user_;
  const auto last =
      ask(RelayStep::end, fmt::format("250 2.0.0 ok: queued as Q{}-{}", moment_.connection, moment_.mail));
  if (!refused_) {
    // Before the client can know it.
    const std::lock_guard lock(server_.mutex_);
    server_.taken_.push_back(mail_);
  }
  return give(last);
}

bool RelayConversation::read_message(std::string& message) {
  std::string line;
  while (stream_.read_line(line)) {
    if (line == ".") return true;
    message += (line.starts_with('.') ? line.substr(1) : line) + "\r\n";
  }
  return false;
}

}  // namespace mailroom::test
