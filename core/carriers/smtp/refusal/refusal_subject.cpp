// Whom a refusal is about, by what relays really say; docs/smtp.md describes the rule.

#include "carriers/smtp/refusal/refusal_subject.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/text.hpp"

namespace mailroom::smtp {
namespace {

/// Enhanced codes (RFC 3463) of the recipient's mailbox and domain, without their class.
constexpr std::array<std::string_view, 12> recipient_codes{"1.1", "1.2", "1.3", "1.4", "1.6",   "1.10",
                                                           "2.1", "2.2", "2.4", "4.4", "4.310", "7.13"};
/// Those of the sender, the login and the sender's quota; from 1.90 on as Microsoft and Google use them.
constexpr std::array<std::string_view, 22> everyones_codes{
    "1.7",  "1.8",   "1.90",  "2.252", "4.5",   "7.8",   "7.9",   "7.11",  "7.14",  "7.57",  "7.60",
    "7.64", "7.139", "7.501", "7.502", "7.503", "7.509", "7.515", "7.606", "7.705", "7.708", "7.750"};

/// "Recipient address rejected" alone is none: Postfix writes it before whatever a policy service says of a
/// sender.
constexpr std::array<std::string_view, 16> recipient_words{
    "user unknown",
    "unknown user",
    "no such user",
    "user not found",
    "unknown recipient",
    "invalid recipient",
    "no such mailbox",
    "mailbox not found",
    "invalid mailbox",
    "no mailbox here",
    "unrouteable address",
    "recipient address rejected: need fully-qualified",
    "recipient address rejected: domain not found",
    "recipient address rejected: undeliverable address",
    "recipient address rejected: unverified address",
    "recipient address rejected: malformed dns"};
constexpr std::array<std::string_view, 82> everyones_words{"helo command rejected",
                                                           "ehlo command rejected",
                                                           "bad helo",
                                                           "invalid helo name",
                                                           "sender address rejected",
                                                           "sender verify failed",
                                                           "sender domain does not exist",
                                                           "sender domain must exist",
                                                           "sender denied",
                                                           "sender rejected",
                                                           "domain of sender address",
                                                           "client host rejected",
                                                           "; client host [",
                                                           "; unverified client host [",
                                                           "; helo command [",
                                                           "; sender address [",
                                                           "using spamhaus",
                                                           "is in an rbl",
                                                           "is in a black list at",
                                                           "is on our block list",
                                                           "banned sending ip",
                                                           "does not have a ptr record",
                                                           "client not authenticated",
                                                           "authentication required",
                                                           "authentication is required",
                                                           "server requires authentication",
                                                           "please turn on smtp authentication",
                                                           "please authenticate",
                                                           "permitted to relay through this server",
                                                           "starttls is required",
                                                           "issue a starttls command",
                                                           "exception:submissionquotaexceeded",
                                                           "sendasdenied;",
                                                           "permissions to send as this sender",
                                                           "sending quota",
                                                           "sending limit",
                                                           "messaging limits",
                                                           "sending suspended",
                                                           "sending paused",
                                                           "send limit exceeded",
                                                           "maximum per connection",
                                                           "outgoing mail from",
                                                           "smtp relay limit",
                                                           "daily message quota",
                                                           "daily quota",
                                                           "daily limit",
                                                           "daily user sending",
                                                           "emails per hour",
                                                           "messages per hour",
                                                           "failures per hour",
                                                           "messages per day",
                                                           "unusual sending activity",
                                                           "your account has been",
                                                           "your account is ",
                                                           "account is not yet activated",
                                                           "unauthorized ip address",
                                                           "is not allowed to send: ",
                                                           "ip address is not allowed to send",
                                                           "is not authorized to perform",
                                                           "not authorized to send email directly",
                                                           "credentials for relay",
                                                           "sender is unauthenticated",
                                                           "due to domain's dmarc policy",
                                                           "email address is not verified",
                                                           "verified sender identity",
                                                           "unauthenticated senders",
                                                           "sender domain not verified",
                                                           "domain is not verified",
                                                           "must be verified in your account",
                                                           "from address not verified",
                                                           "from: address not verified",
                                                           "a sender signature on",
                                                           "unconfigured sending domain",
                                                           "not one of your addresses",
                                                           "not authorised to send from",
                                                           "not authorized to send from",
                                                           "sender address is not allowed",
                                                           "sender is not allowed to relay",
                                                           "relaying disallowed as",
                                                           "must be same as authorization user",
                                                           "must equal authorized user",
                                                           "not local sender over smtp"};

void remove_all(std::string& text, const std::string& part) {
  if (part.empty()) return;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
}

/// Before what a relay quotes from the server of the recipient.
constexpr std::array<std::string_view, 7> quotations{" said: ",
                                                     " was: ",
                                                     "response: ",
                                                     " returned ",
                                                     " replied ",
                                                     " answered ",
                                                     "callout verification failed"};

/// Where an answer of another server begins in `text`, as in `verification failed: 554 5.7.1 no`.
std::size_t quoted_reply(std::string_view text) {
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t i = 1; i + 7 < text.size(); ++i) {
    const bool is_code = (text[i] == '4' || text[i] == '5') && !is_digit(i - 1) && is_digit(i + 1) &&
                         is_digit(i + 2) && (text[i + 3] == ' ' || text[i + 3] == '-');
    const auto is_enhanced = [&](std::string_view code) {
      const auto end = code.find_first_not_of("0123456789", 2);
      return code[0] == text[i] && code[1] == '.' && end != 2 && end < code.size() && code[end] == '.';
    };
    if (is_code && is_enhanced(text.substr(i + 4))) return i;
  }
  return text.size();
}

/// `7.1` of `5.7.1 no`; empty without an enhanced code of the class of `code`.
std::string_view enhanced_code(int code, std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto digits = text.substr(0, end);
  if (digits.size() < 5 || digits[1] != '.' || digits[0] != static_cast<char>('0' + code / 100)) return {};
  return digits.substr(2);
}

template <typename Words>
bool mentions(const std::string& text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

template <typename Codes>
bool contains(const Codes& codes, std::string_view code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

/// True if `text` repeats the sender's address, and not the recipient's.
bool names_sender(std::string_view text, std::string_view recipient, std::string_view sender) {
  const auto words = lower_case(text);
  return !sender.empty() && words.find(lower_case(sender)) != std::string::npos &&
         words.find(lower_case(recipient)) == std::string::npos;
}

}  // namespace

std::string own_words(std::string_view text, std::string_view recipient) {
  auto words = lower_case(text);
  const auto address = lower_case(recipient);
  remove_all(words, address);
  remove_all(words, address.substr(0, address.rfind('@')) + "@");
  for (auto open = words.find('<'); open != std::string::npos; open = words.find('<', open)) {
    const auto close = words.find('>', open);
    words.erase(open, close == std::string::npos ? close : close + 1 - open);
  }
  for (const auto quotation : quotations)
    words.resize(std::min(words.find(quotation), words.size()));
  words.resize(quoted_reply(words));
  return words;
}

delivery::RefusalSubject subject_of_refusal(int code, std::string_view text, std::string_view recipient,
                                            std::string_view sender) {
  // These are about the login, wherever they come (RFC 4954, section 6).
  if (code == 530 || code == 535 || code == 538) return delivery::RefusalSubject::everyone;
  const auto words = own_words(text, recipient);
  const auto enhanced = enhanced_code(code, words);
  // A sender's address can be unknown too.
  if (mentions(words, everyones_words)) return delivery::RefusalSubject::everyone;
  if (contains(recipient_codes, enhanced))
    return names_sender(text, recipient, sender) ? delivery::RefusalSubject::everyone
                                                 : delivery::RefusalSubject::recipient;
  if (contains(everyones_codes, enhanced)) return delivery::RefusalSubject::everyone;
  return mentions(words, recipient_words) ? delivery::RefusalSubject::recipient
                                          : delivery::RefusalSubject::unclear;
}

std::string refusal_key(int code, std::string_view text, std::string_view recipient) {
  auto words = own_words(text, recipient);
  const std::string enhanced(enhanced_code(code, words));
  // Queue ids and times differ from mail to mail.
  std::string kept;
  for (std::size_t at = 0; at < words.size();) {
    const auto end = std::min(words.find(' ', at), words.size());
    const auto word = std::string_view(words).substr(at, end - at);
    if (word.find_first_of("0123456789@") == std::string_view::npos) kept.append(" ").append(word);
    at = end + 1;
  }
  return fmt::format("{} {}{}", code, enhanced, kept);
}

}  // namespace mailroom::smtp
