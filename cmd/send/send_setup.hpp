// Turns settings into what send needs, the writer of mails and the policy, and tries both before the first
// mail.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/template/template_render.hpp"
#include "cmd/terminal/context.hpp"
#include "compose/mail_composer.hpp"
#include "config/relay_path.hpp"
#include "delivery/delivery_policy.hpp"
#include "delivery/delivery_sink.hpp"
#include "templates/template_store.hpp"

namespace mailroom::cmd {

/// Prints what `send` would mail now, and to whom. Claims nothing, and connects to no relay. Throws
/// Error(configuration) as configured_writer().
ExitCode run_send_preview(Context& context);

/// One mail for trial.
struct SendTrial {
  std::string to;      ///< the recipient
  ExampleMail mail{};  ///< what it says, and as which profile
};

/// Sends the mail, and prints the relay's answer. Claims no token. Throws Error(failed) unless a relay
/// accepts it, Error(usage) for an address that cannot be mailed.
ExitCode run_send_trial(const SendTrial& trial, Context& context);

/// Throws Error(configuration) if send.relay or send.from is missing.
void require_send_keys(const config::Settings& settings);

/// Writes mails as the configuration says. Throws Error(configuration) if send.from is missing, or a template
/// cannot be used. Without send.link mails that have none can be written.
std::shared_ptr<const compose::MailWriter> configured_writer(
    const config::Settings& settings, std::optional<mail::BounceAddress> bounce_address = std::nullopt);

/// How the mails of each profile are written, and the place of their lane in lanes_of(). Throws
/// Error(configuration) as configured_writer(), also for each profile. They share templates by `store`, which
/// may be null.
std::shared_ptr<const compose::MailProfiles> configured_profiles(const config::Settings& settings,
                                                                 templates::TemplateStore* store = nullptr);

/// The different paths, that of the section `send` first: each profile has one of them.
std::vector<config::RelayPath> lanes_of(const config::Settings& settings);

/// Throws Error(configuration) as make_relays().
delivery::DeliverySink::Way way_of(const config::RelayPath& path);

/// Throws Error(configuration) for what `mailroom send` would refuse before it connects; without a relay, for
/// a value that is set and not valid. Tells `log` of a link that is missing.
void check_send_settings(const config::Settings& settings, Log& log);

/// True if the mails of some profile can have a link.
bool has_link(const config::Settings& settings);

/// Tells `log` if send.link is not set.
void tell_of_missing_link(const config::Settings& settings, Log& log);

/// Tells `log` if mails do not go to their recipients.
void tell_of_redirection(const config::Settings& settings, Log& log);

delivery::DeliveryPolicy delivery_policy(const config::Settings& settings);

}  // namespace mailroom::cmd
