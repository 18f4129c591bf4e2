// Removes a person from what mailroom has on record, for mailroom message forget.
//
// It does not touch the application's own tables, backups or logs, nor mails that a relay has taken; and it
// does not decide what of a record has to stay (migrations/functions/forgetting.sql).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::messages {

/// Who is forgotten: addresses, or what an application's row is about.
struct ForgetRequest {
  std::vector<std::string> addresses;  ///< or mailboxes, as typed
  std::string reference;               ///< empty for none
};

/// The forms in which the addresses are looked for, in lower case: each in its one form, as it was typed, as
/// it is mailed and with a domain that people read, and all of these as links and JSON have them.
std::vector<std::string> forms_of(const ForgetRequest& request);

/// What forgetting would do.
struct ForgetPlan {
  std::int64_t messages = 0;
  std::int64_t shared = 0;        ///< of these, which others get too
  std::int64_t waiting = 0;       ///< of these, with mails that have not left
  std::int64_t named = 0;         ///< messages to others that have ended, and name one of the addresses
  std::int64_t kept = 0;          ///< the same of messages that can still be sent to others, and keep it
  std::int64_t deliveries = 0;    ///< records, also of mails to accounts
  std::int64_t others = 0;        ///< operations and other rows that name one
  std::int64_t accounts = 0;      ///< with one of the addresses
  std::int64_t suppressions = 0;  ///< of the addresses

  bool empty() const { return messages + named + deliveries + others + suppressions == 0; }
};

/// Changes nothing.
ForgetPlan plan_forgetting(db::Connection& connection, const ForgetRequest& request);

struct Forgotten {
  std::int64_t messages = 0;
  std::int64_t cancelled = 0;  ///< messages
  std::int64_t sending =
      0;                   ///< messages that are leaving now: the record of them will have the address again
  std::int64_t named = 0;  ///< messages to others that named an address
  std::int64_t kept = 0;   ///< messages that can still be sent to others, and name one until then
  std::int64_t deliveries = 0;  ///< records
};

/// In a transaction of its own. The reason is recorded without the addresses.
Forgotten forget(db::Connection& connection, const ForgetRequest& request,
                 const queue::OperationAuthor& author);

}  // namespace mailroom::messages
