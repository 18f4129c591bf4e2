// The commands. What is refused leaves the state as it was, unless reading on would mean to guess.

#include "submission/conversation.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom::submission {
namespace {

constexpr std::size_t longest_command = 4096;
/// RFC 4954, section 4.
constexpr std::size_t longest_login = 12288;

}  // namespace

void Conversation::say(Reply reply) {
  if (state_ == State::over) return;
  if (reply.is_refusal() && ++errors_ > terms_.errors && !reply.is_last) reply = replies::too_many_errors;
  output_ += reply.line();
  if (reply.is_refusal()) service_.refused(reply);
  if (!reply.is_last) return;
  state_ = State::over;
  forget_mail();
}

void Conversation::wait_for_command(TimePoint now) {
  since_ = now;
  limit_ = client_.role.empty() ? terms_.login_timeout : terms_.timeout;
}

std::optional<TimePoint> Conversation::overdue_at() const {
  if (state_ == State::waiting || state_ == State::over) return std::nullopt;
  if (state_ != State::data && state_ != State::chunk) return since_ + limit_;
  return since_ + terms_.data_timeout + std::chrono::seconds(data_.mail().size() / terms_.data_rate);
}

std::size_t Conversation::longest_line() const {
  return state_ == State::command ? longest_command : longest_login;
}

void Conversation::greet(TimePoint now) {
  wait_for_command(now);
  // A 250 for a mail that nobody will send would be a lie.
  if (const auto closed = service_.closed()) return say(*closed);
  output_ += fmt::format("220 {} ESMTP mailroom\r\n", terms_.host);
}

void Conversation::secured(TimePoint now) {
  // RFC 3207, section 4.2: what was learnt before is forgotten.
  client_.is_secure = true;
  hello_.clear();
  is_extended_ = false;
  forget_mail();
  state_ = State::command;
  wait_for_command(now);
}

void Conversation::logged_in(const std::string& role, TimePoint now) {
  client_.role = role;
  state_ = State::command;
  wait_for_command(now);
  say(replies::welcome);
}

void Conversation::stored(const std::string& id, TimePoint now) {
  state_ = State::command;
  commands_ = 0;
  forget_mail();
  wait_for_command(now);
  say({250, "2.0.0", "Ok: queued as message:" + id});
}

void Conversation::refuse(const Reply& reply, TimePoint now) {
  if (state_ == State::waiting) state_ = State::command;
  forget_mail();
  wait_for_command(now);
  say(reply);
}

void Conversation::forget_mail() {
  has_mail_ = is_utf8_ = is_chunked_ = is_last_chunk_ = had_local_from_ = false;
  chunk_refusal_.reset();
  return_path_.clear();
  recipients_.clear();
  recipient_count_ = 0;
  held_until_.reset();
  if (held_ > 0) service_.hold(-static_cast<std::ptrdiff_t>(held_));
  held_ = 0;
  data_.take();
}

Conversation::Wish Conversation::take(std::string_view& bytes, bool has_more, TimePoint now) {
  while (state_ != State::waiting && state_ != State::over) {
    auto wish = Wish::none;
    if (state_ == State::data) {
      if (bytes.empty()) return Wish::none;
      wish = take_data(bytes, now);
    } else if (state_ == State::chunk) {
      if (bytes.empty() && chunk_left_ > 0) return Wish::none;
      wish = take_chunk(bytes, now);
    } else {
      const auto end = bytes.find('\n');
      if (std::min(end, bytes.size()) > longest_line()) {
        say(replies::line_too_long);
        break;
      }
      if (end == std::string_view::npos) return Wish::none;
      const auto line = bytes.substr(0, end + 1);
      bytes.remove_prefix(end + 1);
      wish = take_line(line, has_more || !bytes.empty(), now);
    }
    if (wish != Wish::none) return wish;
  }
  return wish_now();
}

Conversation::Wish Conversation::take_line(std::string_view line, bool has_more, TimePoint now) {
  const bool is_whole = line.ends_with("\r\n");
  if (is_whole) line.remove_suffix(2);
  if (!is_whole || line.find_first_of(std::string_view("\r\0", 2)) != std::string_view::npos) {
    say(replies::bare_in_command);
    return wish_now();
  }
  wait_for_command(now);
  if (state_ != State::command) return take_login_line(line);
  while (line.ends_with(' '))
    line.remove_suffix(1);
  if (++commands_ > terms_.commands) {
    say(replies::too_many_commands);
    return wish_now();
  }
  const auto wish = take_command(line, has_more);
  if (state_ == State::data || state_ == State::chunk) since_ = now;
  return wish == Wish::none ? wish_now() : wish;
}

Conversation::Wish Conversation::take_command(std::string_view line, bool has_more) {
  const auto command = parse_command(line);
  switch (command.verb) {
    case Verb::ehlo:
    case Verb::helo:
      hello(command.rest, command.verb == Verb::ehlo);
      break;
    case Verb::mail:
      mail_from(command.rest);
      break;
    case Verb::rcpt:
      rcpt_to(command.rest);
      break;
    case Verb::data:
      begin_data();
      break;
    case Verb::bdat:
      begin_chunk(command.rest);
      break;
    case Verb::auth:
      return auth(command.rest);
    case Verb::starttls:
      return start_tls(has_more);
    case Verb::rset:
      forget_mail();
      say(replies::ok);
      break;
    case Verb::noop:
      say(replies::ok);
      break;
    case Verb::vrfy:
      say(replies::try_it);
      break;
    case Verb::help:
      say(replies::help);
      break;
    case Verb::quit:
      say(replies::bye);
      break;
    case Verb::web:
      say(replies::no_web_server);
      break;
    case Verb::unknown:
      say(replies::unknown_command);
  }
  return Wish::none;
}

void Conversation::hello(std::string_view name, bool is_extended) {
  constexpr std::size_t longest_name = 255;
  name = trimmed(name);
  if (name.empty() || name.size() > longest_name || !is_printable(name)) return say(replies::nameless);
  hello_ = name;
  is_extended_ = is_extended;
  forget_mail();
  if (!is_extended) return say({250, "", terms_.host});
  output_ += fmt::format(
      "250-{}\r\n250-PIPELINING\r\n250-SIZE {}\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-CHUNKING\r\n"
      "250-FUTURERELEASE {} 9999-12-31T23:59:59Z\r\n",
      terms_.host, terms_.max_size, longest_hold.count());
  if (terms_.has_tls && !client_.is_secure && client_.needs_login) output_ += "250-STARTTLS\r\n";
  if (may_log_in() && client_.role.empty()) output_ += "250-AUTH PLAIN LOGIN\r\n";
  output_ += "250 ENHANCEDSTATUSCODES\r\n";
}

Conversation::Wish Conversation::start_tls(bool has_more) {
  if (!terms_.has_tls || client_.is_secure || !client_.needs_login) {
    say(replies::no_tls);
    return Wish::none;
  }
  if (has_more) {
    say(replies::bytes_behind_starttls);
    return Wish::none;
  }
  say(replies::go_secure);
  state_ = State::waiting;
  return Wish::start_tls;
}

}  // namespace mailroom::submission
