// What a role may do at the desk: PostgreSQL's rights, read once, so that a page shows no button in vain. The
// server checks them again with each statement.
#pragma once

#include "db/connection.hpp"

namespace mailroom::desk {

struct DeskRights {
  bool reads = false;          ///< what mailroom_reader may
  bool reads_content = false;  ///< texts and data of messages
  bool resends = false;
  bool cancels = false;
  bool reschedules = false;
  bool exports = false;     ///< all that is on record of a person, as the owner of the tables may
  bool suppresses = false;  ///< and lets addresses get mails again
};

/// Those of the role of the session.
DeskRights read_desk_rights(db::Connection& connection);

}  // namespace mailroom::desk
