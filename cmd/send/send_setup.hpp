// Turns settings into what send needs: relays, the writer of mails and the policy.
#pragma once

#include <memory>

#include "carriers/smtp/courier.hpp"
#include "cmd/terminal/context.hpp"
#include "delivery/delivery_policy.hpp"
#include "send/mail_writer.hpp"

namespace mailroom {

/// The relays and connections that the configuration names. Throws Error(configuration) if send.relay is
/// missing, a relay or a file cannot be used, or a password is missing.
CourierOptions configured_relays(const Settings& settings, std::uint64_t seed);

/// Writes mails as the configuration says. Throws Error(configuration) if send.from or send.link is missing,
/// or a template cannot be used.
std::shared_ptr<const MailWriter> configured_writer(const Settings& settings);

/// Throws Error(configuration) for what `mailroom send` would refuse at its start; without a relay, for a
/// value that is set and not valid.
void check_send_settings(const Settings& settings);

DeliveryPolicy delivery_policy(const Settings& settings);

}  // namespace mailroom
