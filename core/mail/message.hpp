// Puts the whole message of a mail together, as SMTP carries it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/moment.hpp"
#include "mail/address.hpp"
#include "mail/extra_header.hpp"
#include "mail/refusal.hpp"

namespace mailroom {

/// What differs from one mail to the next. The views must outlive the call that takes them.
struct MailContent {
  Moment date{};
  std::string_view queue;
  std::string_view key{};  ///< of the mail: letters and digits, at least one
  std::int64_t token = 0;  ///< the token's id
  const Address& to;
  std::string_view subject;
  std::string_view text;
  std::optional<std::string_view> html = std::nullopt;
};

/// The id of the mail for `token` of `queue`, without angle brackets: `QUEUE.KEY.TOKEN.mailroom@domain`. Two
/// tokens, or two queues, never have the same id; the key tells two databases apart, and a mail that is sent
/// again on purpose from the first. Bytes of the queue's name other than letters, digits,
/// hyphens and underscores become `=XX`.
std::string make_message_id(std::string_view queue, std::string_view key, std::int64_t token,
                            std::string_view domain);

/// Builds complete messages (RFC 5322) from one sender, ready for DATA apart from the doubling of dots. The
/// bytes depend on the arguments alone, so each attempt sends the same. They are ASCII unless an address
/// needs SMTPUTF8. Several threads may use one builder.
class MessageBuilder {
 public:
  /// Throws Error(configuration) if a name or a header has a control character or invalid UTF-8.
  MessageBuilder(const Mailbox& from, const std::optional<Mailbox>& reply_to,
                 const std::vector<ExtraHeader>& headers);

  /// The message: text and HTML as multipart/alternative, or the text alone. Refuses control characters, line
  /// ends among them, in the subject and the address, invalid UTF-8 anywhere, and a queue's name of more than
  /// 63 octets.
  std::variant<std::string, Refusal> build(const MailContent& content) const;

  /// The sender's address, or that for replies, if it needs SMTPUTF8; see needs_smtputf8() for a recipient's.
  /// Else empty.
  const std::string& utf8_sender() const { return utf8_sender_; }

 private:
  std::string from_header_;
  std::string reply_to_header_;  ///< empty for none
  std::string extra_headers_;    ///< Auto-Submitted and the like, and the operator's
  std::string domain_;
  std::string utf8_sender_;
};

}  // namespace mailroom
