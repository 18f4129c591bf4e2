// Turns settings into what send needs: the writer of mails and the policy.
#pragma once

#include <memory>

#include "cmd/terminal/context.hpp"
#include "compose/mail_writer.hpp"
#include "delivery/delivery_policy.hpp"

namespace mailroom {

/// Throws Error(configuration) if send.relay, send.from or send.link is missing.
void require_send_keys(const Settings& settings);

/// Writes mails as the configuration says. Throws Error(configuration) if send.from or send.link is missing,
/// or a template cannot be used.
std::shared_ptr<const MailWriter> configured_writer(const Settings& settings);

/// Throws Error(configuration) for what `mailroom send` would refuse at its start; without a relay, for a
/// value that is set and not valid.
void check_send_settings(const Settings& settings);

DeliveryPolicy delivery_policy(const Settings& settings);

}  // namespace mailroom
