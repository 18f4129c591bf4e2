// What became of a mail at a recipient after the relay took it, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mailroom::bounce {

/// What happened to a mail at one recipient after the relay took it.
enum class BounceKind : std::uint8_t {
  hard,          ///< the address does not exist, or never takes mail
  soft,          ///< it did not arrive, and another mail may
  undetermined,  ///< it did not arrive, and nothing says whether another mail may
  complaint,     ///< the recipient called it spam
  delayed,       ///< it is still tried
  auto_reply,    ///< a program answered for the recipient
  unsubscribed,  ///< the recipient wants no more mails
  delivered      ///< it arrived, or was passed on
};

/// Why. The first four are the only ones that make a bounce hard.
enum class BounceReason : std::uint8_t {
  user_unknown,     ///< no such mailbox
  host_unknown,     ///< no such domain, or none that takes mail
  has_moved,        ///< the mailbox is elsewhere, for good
  not_accept,       ///< the domain says that it takes no mail
  mailbox_full,     ///< or the disk of the server
  message_too_big,  ///< this mail is larger than the server takes
  suspended,        ///< the mailbox is locked, disabled or inactive
  filtered,         ///< refused for this recipient, by a rule that is not known
  blocked,          ///< refused because of the host that sends
  spam,             ///< taken for spam
  virus,            ///< taken for harmful
  policy,           ///< refused by a rule of the server
  authentication,   ///< SPF, DKIM or DMARC failed
  sender_rejected,  ///< refused because of the sender's address
  relaying_denied,  ///< the server asked is not that of the domain, or wants a login
  content,          ///< a header or part is malformed or not wanted
  rate_limited,     ///< too much at a time
  expired,          ///< given up after a while, or still tried
  network,          ///< the server was not reached
  system,           ///< the server failed
  feedback,         ///< a feedback report
  vacation,         ///< an automatic reply
  delivered,        ///< a positive notification
  unsubscribed,     ///< a wish for no more mails
  undetermined      ///< nothing said why
};

/// `user_unknown`
const char* bounce_reason_name(BounceReason reason);

/// The reason of this name.
std::optional<BounceReason> parse_bounce_reason(std::string_view name);

/// `hard`
const char* bounce_kind_name(BounceKind kind);

}  // namespace mailroom::bounce
