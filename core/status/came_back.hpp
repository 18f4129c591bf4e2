// What came back lately of mails that a relay had accepted.
#pragma once

#include <cstdint>
#include <string>

#include "db/connection.hpp"

namespace mailroom {

/// Within the last hour.
struct CameBack {
  bool is_known = true;         ///< false: the role may not read mailroom_bounces, or row security hides some
  std::int64_t hard = 0;        ///< mails of the queue to addresses that take none
  std::int64_t bounced = 0;     ///< other mails of the queue that did not arrive
  std::int64_t complaints = 0;  ///< of the queue
  std::int64_t delivered = 0;   ///< of the queue
  std::int64_t unmatched = 0;   ///< of every queue: of no mail that is known, or not understood

  bool empty() const { return hard + bounced + complaints + delivered + unmatched == 0; }
};

/// Within the caller's transaction.
CameBack read_came_back(pqxx::transaction_base& transaction, const std::string& queue);

}  // namespace mailroom
