// What the readers of the events of providers have in common: JSON of any form, and the bounce types of
// Amazon SES.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "bounce/bounce.hpp"
#include "bounce/delivery_status.hpp"

namespace mailroom::bounce {

/// The member `key`; null if `object` is none, or has none.
const nlohmann::json& member(const nlohmann::json& object, const char* key);

/// The text of the member `key`, its begin if it is longer than a diagnostic of several lines can be; empty
/// if it is no text.
std::string text_member(const nlohmann::json& object, const char* key);

/// The text of a member that becomes a name, such as an id; empty if it has blanks, or is longer than one.
std::string name_member(const nlohmann::json& object, const char* key);

/// The address of `Ada <ada@mail.example>`, its domain in lower case; empty if there is none.
std::string event_address(std::string_view text);

/// The time in the member `key`.
std::optional<Moment> moment_member(const nlohmann::json& object, const char* key);

/// `type` and `subtype` of a bounce as Amazon SES has them, and Resend after it.
struct BounceType {
  std::string type;     ///< `Permanent`, `Transient` or `Undetermined`
  std::string subtype;  ///< `General`, `MailboxFull`, …
};

/// Judges the fields of a recipient by the words of the remote server, then by the status, and by the type
/// where these say nothing. Never `delivered`.
BounceRecipient judge_event_recipient(const RecipientFields& fields, const BounceType& type);

/// Adds a recipient, unless there are too many.
void add_recipient(BounceRecipient recipient, Bounce& bounce);

/// Adds a recipient without words of a server.
void add_recipient(std::string address, BounceKind kind, BounceReason reason, Bounce& bounce);

/// Makes the text that is the same for each copy of the event: by SNS and by a queue, sent again, with a
/// name of its own in each envelope. Empty without an id of the mail.
std::string event_key(std::string_view provider, std::string_view event, const BounceType& type,
                      const Bounce& bounce);

}  // namespace mailroom::bounce
