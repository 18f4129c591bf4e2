// What a schema needs beside the definitions that migrations make: rows that every database has, and one
// owner.
#pragma once

#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::schema {

/// The rows that every database has and this one lacks, as in `the action "message"`: somebody has emptied
/// the tables. None if this role cannot tell. For the newest version only. mailroom_restore_rows() makes
/// them.
std::vector<std::string> missing_rows(db::Connection& connection);

/// The tables, sequences and functions of mailroom that do not belong to the owner of mailroom_messages.
struct OtherOwners {
  std::string owner;                    ///< of mailroom_messages
  std::vector<std::string> objects;     ///< `function mailroom_send`
  std::vector<std::string> statements;  ///< that give them to the owner
};

OtherOwners other_owners(db::Connection& connection);

}  // namespace mailroom::schema
