// The mails that send --dry-run shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compose/mail_composer.hpp"
#include "db/connection.hpp"
#include "delivery/delivery_policy.hpp"

namespace mailroom::compose {

/// A token that a sender would claim, and its mail.
struct WaitingMail {
  std::int64_t token = 0;
  std::string action;  ///< as the database names it
  std::string email;
  std::string redirected_to{};  ///< the address that gets it in place of `email`, if one does
  std::string subject{};        ///< empty if it would not be mailed
  std::optional<claim::TokenOutcome> not_mailed{};  ///< what it would be instead
};

struct WaitingMails {
  std::vector<WaitingMail> first;  ///< ordered by token
  std::int64_t total = 0;          ///< how many wait, including those that are not listed
};

/// What waits in `queue` now: tokens above its cursor, in its gaps, and deferred ones whose time has come;
/// without those that a consumer holds. Reads at most `limit` of them. Claims and writes nothing. Joins the
/// transaction of `connection`, if any. Throws DatabaseError MR001 for an unknown queue.
WaitingMails read_waiting_mails(db::Connection& connection, const std::string& queue,
                                const MailProfiles& profiles, const delivery::DeliveryPolicy& policy,
                                int limit);

}  // namespace mailroom::compose
