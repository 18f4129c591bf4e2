// Which rights on mailroom's objects nobody meant to give: those that no role of the list has.
#pragma once

#include <string>

#include "schema/roles.hpp"

namespace mailroom::schema {

/// What should be taken from the role `name`, which was granted `held`; an empty name is everyone. Any role
/// keeps what it has if that is what a producer may have, or most of what another role of the list is given,
/// or among `also`. One that has more keeps what a role of the list may have that its name ends as
/// (`shop_reader`), or that an application is by a right that was given to it alone; any other loses all: who
/// was given every table has what each role needs, too.
Privileges undue_rights(const std::string& name, const Privileges& held, const Privileges& also = {});

/// `SELECT on tokens, UPDATE on jobs, mailroom_batches and 3 more`
std::string described(const Privileges& privileges);

/// The statements that take them from `grantee`; that and `schema` are quoted.
std::vector<std::string> revoke_statements(const Privileges& undue, const Privileges& held,
                                           const std::string& schema, const std::string& grantee);

}  // namespace mailroom::schema
