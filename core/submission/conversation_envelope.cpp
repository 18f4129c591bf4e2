// MAIL and RCPT: who the mail is from, and to whom.

#include <algorithm>
#include <fmt/format.h>
#include <variant>

#include "base/text.hpp"
#include "mail/address.hpp"
#include "submission/conversation.hpp"
#include "submission/mail_time.hpp"

namespace mailroom::submission {
namespace {

/// `address` as it is mailed; nullopt for what is none.
std::optional<std::string> mailed_address(const std::string& address, bool is_utf8, bool& needs_utf8) {
  const auto parsed = mail::parse_address(address);
  const auto* valid = std::get_if<mail::Address>(&parsed);
  if (valid == nullptr) return std::nullopt;
  const bool has_utf8 =
      std::ranges::any_of(address, [](char c) { return static_cast<unsigned char>(c) > 127; });
  needs_utf8 = has_utf8 && !is_utf8;
  return valid->text();
}

}  // namespace

void Conversation::mail_from(std::string_view rest) {
  if (client_.role.empty())
    return say(client_.is_secure || !terms_.has_tls ? replies::login_first : replies::secure_first);
  if (hello_.empty()) return say(replies::hello_first);
  if (has_mail_) return say(replies::has_mail);
  if (const auto closed = service_.closed()) return say(*closed);
  auto path = parse_path(rest);
  if (!path) return say(replies::bad_mail);
  is_utf8_ = false;
  held_until_.reset();
  if (const auto problem = problem_of(path->parameters)) return say(*problem);
  had_local_from_ = !path->address.empty() && is_local_address(path->address) && !terms_.local_from.empty();
  if (had_local_from_) path->address = terms_.local_from;
  if (!path->address.empty()) {
    bool needs_utf8 = false;
    const auto address = mailed_address(path->address, is_utf8_, needs_utf8);
    if (!address) return say(replies::bad_sender);
    if (needs_utf8) return say(replies::utf8_sender);
    path->address = *address;
  }
  if (!is_sender_allowed(path->address, service_.terms_of(client_.role).senders))
    return say(replies::foreign_sender);
  // The mail need not come whole to learn it.
  if (service_.is_over_limit(client_.role)) return say(replies::over_limit);
  return_path_ = path->address;
  has_mail_ = true;
  say(replies::sender_ok);
}

std::optional<Reply> Conversation::problem_of(const std::vector<Parameter>& parameters) {
  for (const auto& [key, value] : parameters) {
    if (key == "SIZE") {
      // RFC 1870, section 6.1: a size that is too large is refused before the mail comes.
      const auto size = parse_number<unsigned long long>(value);
      if (!size || *size > terms_.max_size)
        return Reply{552, "5.3.4", fmt::format("a mail has at most {} bytes", terms_.max_size)};
    } else if (key == "BODY") {
      const auto body = lower_case(value);
      if (body != "7bit" && body != "8bitmime") return replies::bad_body;
    } else if (key == "SMTPUTF8") {
      is_utf8_ = true;
    } else if (key == "HOLDFOR") {
      const auto seconds = parse_number<std::int64_t>(value);
      if (!seconds || *seconds < 0 || *seconds > longest_hold.count()) return replies::bad_hold;
      held_until_ = service_.now() + std::chrono::seconds(*seconds);
    } else if (key == "HOLDUNTIL") {
      held_until_ = parse_mail_time(value.substr(0, value.find(';')));
      if (!held_until_) return replies::bad_hold;
    } else if (key != "AUTH") {
      // RFC 4954, section 5: who is not trusted is taken for <>.
      return Reply{555, "5.5.4", fmt::format("there is no parameter {}", key)};
    }
  }
  return std::nullopt;
}

void Conversation::rcpt_to(std::string_view rest) {
  if (!has_mail_) return say(replies::no_mail);
  const auto path = parse_path(rest);
  if (!path || path->address.empty()) return say(replies::bad_rcpt);
  if (!path->parameters.empty())
    return say({555, "5.5.4", fmt::format("there is no parameter {}", path->parameters.front().key)});
  // RFC 5321, section 4.5.3.1.10: the client sends the others in another mail.
  if (recipient_count_ >= terms_.max_recipients)
    return say(
        {452, "4.5.3",
         fmt::format("a mail has at most {} recipients, send the others in another", terms_.max_recipients)});
  const bool is_local = is_local_address(path->address);
  if (is_local && terms_.local_to.empty()) return say(replies::local_recipient);
  bool needs_utf8 = false;
  const auto address = mailed_address(is_local ? terms_.local_to : path->address, is_utf8_, needs_utf8);
  if (!address) return say(replies::bad_recipient);
  if (needs_utf8) return say(replies::utf8_recipient);
  if (recipient_count_++ > 0) recipients_ += '\n';
  recipients_ += *address;
  // Recipients that are accepted have a limit of their own.
  --commands_;
  say(replies::recipient_ok);
}

}  // namespace mailroom::submission
