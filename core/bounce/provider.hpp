// The providers whose events are read, and how each keeps the id of a copy: in a header of the mail, which
// its events repeat.
//
// A provider is a directory: its event.cpp has the Provider. Its settings are in core/webhook.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bounce/bounce.hpp"

namespace mailroom::bounce {

/// What one event says.
struct EventReading {
  std::optional<Bounce> bounce{};  ///< nullopt: nothing of an arrival
  std::string unknown{};           ///< its kind, if no rule knows it; then there is no bounce
};

struct Provider {
  std::string_view name;   ///< as settings name it: `postmark`
  std::string_view title;  ///< `Postmark`
  /// Of its relays for SMTP; a `*` stands for a region.
  std::vector<std::string_view> hosts{};
  /// The header of a mail that its events repeat, without its line end, for the id of a copy; null: none.
  std::string (*header)(std::string_view id) = nullptr;
  /// Why `event` is none of its events; empty if it is one.
  std::string (*problem_of)(const nlohmann::json& event);
  /// Reads one that is.
  EventReading (*read)(const nlohmann::json& event);
};

/// Each, with the generic form as the last.
std::span<const Provider* const> providers();

/// Null for another name.
const Provider* find_provider(std::string_view name);

/// Whose relay this host is; null for somebody else's.
const Provider* provider_of_host(std::string_view host);

/// An event that says something of an arrival.
struct ReadEvent {
  Bounce bounce;
  std::string bytes;  ///< of it alone
};

/// What a body has: one event, or an array of them.
struct ReadEvents {
  std::vector<ReadEvent> events{};
  std::vector<std::string> unknown{};  ///< kinds that no rule knows: `Postmark Foo`
  std::string problem{};               ///< why nothing of it is taken; empty if it is
};

/// Reads what `provider` has posted, and nothing else. Never throws for what a body may hold.
ReadEvents read_events(std::string_view body, const Provider& provider);

/// The same of whichever provider its form is of, also within what SNS or EventBridge makes of it.
ReadEvents read_events(std::string_view body);

}  // namespace mailroom::bounce
