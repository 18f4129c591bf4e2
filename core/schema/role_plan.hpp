// What `init --roles` does in a database: which roles are missing, and the statements that make them and give
// them their rights.
#pragma once

#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::schema {

struct RolePlan {
  std::vector<std::string> missing;      ///< roles that are created
  std::vector<std::string> grants;       ///< each may be run again
  std::vector<std::string> memberships;  ///< that are missing, and that this session may give
  std::vector<std::string> left;         ///< memberships that another role has to give

  /// All, in their order.
  std::vector<std::string> statements() const;
};

/// `prefix` needs no quotes.
RolePlan plan_roles(db::Connection& connection, const std::string& prefix);

/// Makes all but what is `left`, in one transaction. Throws Error(failed) if the session's role may not.
void make_roles(db::Connection& connection, const RolePlan& plan);

}  // namespace mailroom::schema
