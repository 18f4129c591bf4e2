// From the name that a provider gives to a kind of event to what became of the mail: one function for all
// providers, and what else their readers have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "bounce/event_fields.hpp"
#include "bounce/provider.hpp"

namespace mailroom::bounce {

/// What a provider says by calling an event so.
enum class EventSort : std::uint8_t {
  nothing,       ///< of an arrival: opened, clicked, sent
  delivered,     ///< the recipient's server has it
  permanent,     ///< came back for good: hard, unless the words of the server say otherwise
  listed,        ///< not sent, as the address had come back for good before
  transient,     ///< not delivered, and it may be another time
  undetermined,  ///< not delivered, and the provider does not know why
  delayed,       ///< still tried
  complaint,
  unsubscribed,
  auto_reply
};

struct EventRule {
  std::string_view name;
  EventSort sort;
  /// Of what came back, where no words say more.
  BounceReason reason = BounceReason::undetermined;
};

/// Null for a name that no rule has.
const EventRule* find_rule(std::span<const EventRule> rules, std::string_view name);

/// What became of the mail at a recipient. Not for `nothing`.
BounceRecipient sort_event(const EventRule& rule, const RecipientFields& fields);

/// What of an event is not about its recipient.
struct EventMail {
  std::string id{};          ///< of the copy, as its header had it
  std::string message_id{};  ///< with <> or without
  std::optional<Moment> at{};
  std::string key{};  ///< what copies of the event share and no other has; empty: its bytes
};

/// The reading of an event by `rule`, null for a name that is not known: `name`.
EventReading reading_of(const Provider& provider, const EventRule* rule, std::string_view name,
                        const RecipientFields& fields, const EventMail& mail);

/// The time in a member that is a number of seconds since 1970, or a text of one, or a date.
std::optional<Moment> any_moment(const nlohmann::json& object, const char* key);

/// The text of a member that is one, or a whole number.
std::string any_text(const nlohmann::json& object, const char* key);

/// `{"mailroom":"42-k3x9q2mh7d"}`, and the id of such a text or object.
std::string id_object(std::string_view id);
std::string id_of_object(const nlohmann::json& object);

/// A Message-ID without <>.
std::string bare_message_id(const std::string& id);

/// A reply of SMTP of its parts, of which any may be missing.
std::string reply_of(const std::string& code, const std::string& words);

}  // namespace mailroom::bounce
